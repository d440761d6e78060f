package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/store/maintenance"
)

// letter is a message as it is posted, by its number.
func letter(n int) outbound.Message {
	return outbound.Message{
		Message: channel.Message{
			ID: fmt.Sprintf("out_%d", n), Installation: "i", Op: "send", Conversation: "C1", Thread: "T1", MessageID: "M1",
			Text: "text <" + fmt.Sprint(n) + ">", Format: channel.Markdown, Native: []byte(`{ "n": 1.50 }`),
		},
		ExpiresIn: 15 * time.Minute,
	}
}

// post posts on the acting node.
func (w *world) post(m outbound.Message) admin.Message {
	w.Helper()
	got, err := w.s.PutMessage(w.ctx, m)
	w.must(err)
	return got
}

// outgoing returns what waits under a lease.
func (w *world) outgoing(lease string) []outbound.Item {
	w.Helper()
	items, err := w.s.Outgoing(w.ctx, lease, 0, 1000)
	w.must(err)
	return items
}

// sending posts a message and takes it up.
func (w *world) sending(t channel.Term, n int) int64 {
	w.Helper()
	seq := w.post(letter(n)).Seq
	_, err := w.s.BeginSending(w.ctx, t, seq)
	w.must(err)
	return seq
}

// is compares a message's state.
func (w *world) is(what, id, state string) admin.Message {
	w.Helper()
	m, err := w.s.Message(w.ctx, id)
	w.must(err)
	want(w, what, m.State, state)
	return m
}

func (r *runner) postbox(t *testing.T) {
	r.promise(t, "what waits is listed per lease in the order of posting, page by page", func(w *world) {
		s := w.node()
		w.hold("i")
		w.put("j")
		for n := range 5 {
			w.post(letter(n))
			other := letter(100 + n)
			other.Installation = "j"
			w.post(other)
		}
		all := w.outgoing("i")
		want(w, "messages", len(all), 5)
		for n, m := range all {
			want(w, "id", m.ID, fmt.Sprintf("out_%d", n))
			want(w, "state", m.State, outbound.Queued)
			want(w, "due", m.Due, 0)
			want(w, "left", m.Left, 15*time.Minute)
			want(w, "installation", m.Installation, "i")
			want(w, "channel type", m.ChannelType, "fake")
			want(w, "conversation", m.Conversation, "C1")
			want(w, "it is no edit", m.Edits, "")
		}
		page, err := s.Outgoing(w.ctx, "i", all[1].Seq, 2)
		w.must(err)
		if !slices.Equal(page, all[2:4]) {
			w.Errorf("got %v behind the second, want %v", page, all[2:4])
		}
		leases, err := s.Laden(w.ctx)
		w.must(err)
		if !slices.Equal(leases, []string{"i", "j"}) {
			w.Errorf("got leases %v, want i and j", leases)
		}
	})

	r.promise(t, "an edit that waits is listed with what it is of, and is over once a newer one took its place", func(w *world) {
		s := w.node()
		term := w.hold("i")
		edit := letter(1)
		edit.Op = "edit"
		seq := w.post(edit).Seq
		want(w, "what it is of", w.outgoing("i")[0].Edits, "M1")
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Expired, Error: "a newer one"}))
		want(w, "why", w.is("state", "out_1", "expired").LastError, "a newer one")
		want(w, "messages that wait", len(w.outgoing("i")), 0)
	})

	r.write(t, "a message is taken up with all that was posted, by the same term again", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.post(letter(1)).Seq
		var got outbound.TakenUp
		w.must(w.do(func() (err error) { got, err = s.BeginSending(w.ctx, term, seq); return err }))
		posted := letter(1).Message
		if fmt.Sprintf("%+v", got.Message) != fmt.Sprintf("%+v", posted) {
			w.Errorf("got %+v, want %+v", got, posted)
		}
		w.is("state", "out_1", "sending")
		want(w, "it waits still", w.outgoing("i")[0].State, outbound.Sending)
		_, err := s.BeginSending(w.ctx, term, seq)
		w.must(err)
		_, next := w.cursor(term, "bot") // the term that follows speaks through another connection
		_, err = s.BeginSending(w.ctx, next, seq)
		w.must(err)
	})

	for _, end := range []outbound.State{outbound.Sent, outbound.Refused, outbound.Unknown} {
		r.write(t, "what was sent, or not, is done: "+end.String(), func(w *world) {
			s := w.node()
			term := w.hold("i")
			seq := w.sending(term, 1)
			w.clock.Step(time.Second)
			err := w.do(func() error {
				return s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: end, Count: true, Error: "words", Receipt: []byte(`{"message_id":"17","raw":{"a":1}}`)})
			})
			if w.form == persisted {
				want(w, "answer to the repeat", errors.Is(err, outbound.ErrSettled), true)
			} else {
				w.must(err)
			}
			m := w.is("state", "out_1", end.String())
			want(w, "attempts", m.Attempts, 1)
			want(w, "words", m.LastError, "words")
			want(w, "ended", m.EndedAt.Equal(w.clock.Now()), true)
			want(w, "next attempt", m.NextAttempt.IsZero(), true)
			want(w, "receipt", m.Receipt.MessageID+string(m.Receipt.Raw), `17{"a":1}`)
			want(w, "waiting", len(w.outgoing("i")), 0)
			leases, err := s.Laden(w.ctx)
			w.must(err)
			want(w, "leases with messages", len(leases), 0)
			_, err = s.BeginSending(w.ctx, term, seq)
			want(w, "taken up again", errors.Is(err, outbound.ErrSettled), true)
		})
	}

	r.promise(t, "what surely was not sent waits again as long as it is told, and counts when it should", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.sending(term, 1)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, Count: true, Wait: time.Minute, Error: "reset"}))
		m := w.is("state", "out_1", "queued")
		want(w, "next attempt", m.NextAttempt.Equal(w.clock.Now().Add(time.Minute)), true)
		want(w, "words", m.LastError, "reset")
		want(w, "attempts", m.Attempts, 1)
		w.clock.Step(20 * time.Second)
		want(w, "due", w.outgoing("i")[0].Due, 40*time.Second)
		_, err := s.BeginSending(w.ctx, term, seq)
		w.must(err)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, Wait: time.Minute}))
		want(w, "attempts after one that does not count", w.outgoing("i")[0].Attempts, 1)
	})

	r.promise(t, "no other owner or epoch writes anything of a message", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq, queued := w.sending(term, 1), w.post(letter(2)).Seq
		for name, stale := range staleTerms(term) {
			if name == "run" {
				continue // owner and epoch fence it
			}
			_, err := s.BeginSending(w.ctx, stale, queued)
			want(w, name+": taken up", errors.Is(err, outbound.ErrFenced), true)
			for _, state := range []outbound.State{outbound.Queued, outbound.Sent, outbound.Unknown} {
				err := s.EndSending(w.ctx, outbound.End{Term: stale, Seq: seq, State: state})
				want(w, name+": ended as "+state.String(), errors.Is(err, outbound.ErrFenced), true)
			}
			err = s.EndSending(w.ctx, outbound.End{Term: stale, Seq: queued, State: outbound.Expired})
			want(w, name+": expired", errors.Is(err, outbound.ErrFenced), true)
		}
		w.is("the one that was being sent", "out_1", "sending")
		w.is("the one that waits", "out_2", "queued")
		w.must(s.EndSession(w.ctx, "a"))
		err := s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Sent})
		want(w, "ended by a session that is gone", errors.Is(err, outbound.ErrFenced), true)
	})

	r.promise(t, "a lease writes nothing of another's messages", func(w *world) {
		s := w.node()
		w.hold("i")
		w.put("j")
		other := w.begin(s, "a", "j")
		seq := w.post(letter(1)).Seq
		_, err := s.BeginSending(w.ctx, other, seq)
		want(w, "taken up", errors.Is(err, outbound.ErrSettled), true)
		err = s.EndSending(w.ctx, outbound.End{Term: other, Seq: seq, State: outbound.Expired})
		want(w, "expired", errors.Is(err, outbound.ErrSettled), true)
		w.is("state", "out_1", "queued")
	})

	r.promise(t, "what a dead holder was sending is its successor's to end, not to send by itself", func(w *world) {
		s := w.node()
		seq := w.sending(w.hold("i"), 1)
		w.must(s.EndSession(w.ctx, "a"))
		other := w.node()
		w.open(other, "b")
		next := w.begin(other, "b", "i")
		_, err := other.BeginSending(w.ctx, next, seq)
		want(w, "taken up", errors.Is(err, outbound.ErrSettled), true)
		want(w, "found", w.outgoing("i")[0].State, outbound.Sending)
		w.must(other.EndSending(w.ctx, outbound.End{Term: next, Seq: seq, State: outbound.Queued}))
		_, err = other.BeginSending(w.ctx, next, seq)
		w.must(err)
		w.must(other.EndSending(w.ctx, outbound.End{Term: next, Seq: seq, State: outbound.Unknown}))
		w.is("state", "out_1", "unknown")
	})

	r.write(t, "a message whose time is over is never taken up", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.post(letter(1)).Seq
		w.clock.Step(15 * time.Minute)
		want(w, "left", w.outgoing("i")[0].Left, 0)
		err := w.do(func() error {
			_, err := s.BeginSending(w.ctx, term, seq)
			if errors.Is(err, outbound.ErrExpired) || errors.Is(err, outbound.ErrSettled) {
				return nil
			}
			return err
		})
		w.must(err)
		w.is("state", "out_1", "expired")
	})

	r.promise(t, "what may have been sent before is unknown when its time is over, whoever finds that", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for n := range 3 {
			seq := w.sending(term, n)
			w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, Doubt: true}))
			_, err := s.BeginSending(w.ctx, term, seq)
			w.must(err)
			w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq})) // surely not, this time
		}
		all := w.outgoing("i")
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: all[0].Seq, State: outbound.Expired}))
		w.is("ended by its holder", "out_0", "unknown")
		w.clock.Step(15 * time.Minute)
		_, err := s.BeginSending(w.ctx, term, all[1].Seq)
		want(w, "taken up", errors.Is(err, outbound.ErrExpired), true)
		w.is("found when it was taken up", "out_1", "unknown")
		w.must(s.EndSession(w.ctx, "a"))
		_, err = s.Sweep(w.ctx, week())
		w.must(err)
		w.is("ended by the sweeper", "out_2", "unknown")
	})

	r.write(t, "a holder lets expire what waits, and nothing that is being sent", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.post(letter(1)).Seq
		err := w.do(func() error { return s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Expired}) })
		if w.form == persisted {
			want(w, "answer to the repeat", errors.Is(err, outbound.ErrSettled), true)
		} else {
			w.must(err)
		}
		w.is("state", "out_1", "expired")
		sending := w.sending(term, 2)
		err = s.EndSending(w.ctx, outbound.End{Term: term, Seq: sending, State: outbound.Expired})
		want(w, "one that is being sent", errors.Is(err, outbound.ErrSettled), true)
	})

	r.promise(t, "a rider's messages stand under its carrier's lease, and go with it to another", func(w *world) {
		s := w.node()
		w.hold("carrier")
		w.put("i", via("carrier"))
		m := w.post(letter(1))
		want(w, "lease", m.Lease, "carrier")
		want(w, "waiting", w.outgoing("carrier")[0].Installation, "i")
		_, err := s.PutInstallation(w.ctx, admin.Installation{ID: "i", Type: "fake", Enabled: true, Source: "api"}, 1)
		w.must(err)
		want(w, "left with the carrier", len(w.outgoing("carrier")), 0)
		want(w, "under its own lease", len(w.outgoing("i")), 1)
	})

	r.write(t, "the sweeper ends what nobody holds once its time is over, and leaves what somebody does", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.sending(term, 1)
		w.post(letter(2))
		w.put("j")
		free := letter(3)
		free.Installation = "j"
		w.post(free)
		swept, err := s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "in time", swept.Idle(), true)
		w.clock.Step(15 * time.Minute)
		_, err = s.Sweep(w.ctx, week())
		w.must(err)
		w.is("of a lease that is held", "out_2", "queued")
		w.is("of a free lease", "out_3", "expired")
		_, err = s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		w.must(w.do(func() (err error) { swept, err = s.Sweep(w.ctx, week()); return err }))
		if w.form != persisted { // the count was the answer that was lost
			want(w, "expired", swept.Expired, 2)
		}
		w.is("that waited", "out_2", "expired")
		want(w, "words", w.is("that was being sent", "out_1", "unknown").LastError, outbound.LostWithHolder)
	})

	r.write(t, "messages that are done go after their retention, and none that waits", func(w *world) {
		s := w.node()
		term := w.hold("i")
		var done []int64
		for n := range 5 {
			done = append(done, w.sending(term, n))
		}
		w.clock.Step(time.Minute)
		for _, seq := range done {
			w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Sent}))
		}
		w.post(letter(9))
		keep := week()
		keep.Messages = 7 * day
		w.clock.Step(7 * day)
		swept, err := s.Sweep(w.ctx, keep)
		w.must(err)
		want(w, "on the last day", swept.Messages, 0)
		w.clock.Step(time.Second)
		swept, err = s.Sweep(w.ctx, maintenance.Retention{Batch: 3, Pause: time.Microsecond})
		w.must(err)
		want(w, "with a retention of zero", swept.Messages, 0)
		w.must(w.do(func() (err error) { swept, err = s.Sweep(w.ctx, keep); return err }))
		if w.form == plain {
			want(w, "swept", swept.Messages, 5)
		}
		left, err := s.Messages(w.ctx, admin.MessageQuery{})
		w.must(err)
		want(w, "left", len(left), 1)
		want(w, "the one that waits", left[0].ID, "out_9")
	})
}
