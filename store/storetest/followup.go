package storetest

import (
	"errors"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/engine"
)

// sealedAddress is what a follow-up address is to a store: bytes of any kind.
const sealedAddress = "\x01sealed\x00\xff"

// followed is a batch of one event with a follow-up address.
func (w *world) followed(t channel.Term, id string, good time.Duration) engine.AcceptRequest {
	b := batch(t, id)
	b.Events[0].FollowUp, b.Events[0].FollowUpUntil = []byte(sealedAddress), w.clock.Now().Add(good)
	return b
}

// answering posts a message that answers an event.
func (w *world) answering(n int, event int64, conversation string) int64 {
	w.Helper()
	m := letter(n)
	m.Answers, m.Conversation = event, conversation
	return w.post(m).Seq
}

// takes takes a message up, and compares the address that comes with it.
func (w *world) takes(what string, t channel.Term, seq int64, sealed string) {
	w.Helper()
	got, err := w.s.BeginSending(w.ctx, t, seq)
	w.must(err)
	want(w, what, string(got.Sealed), sealed)
	if sealed != "" {
		want(w, what+": the event", got.Event, "1")
	}
}

func (r *runner) followUps(t *testing.T) {
	r.write(t, "a follow-up address comes with what answers its event, in the event's conversation", func(w *world) {
		s := w.node()
		term := w.hold("i")
		b := w.followed(term, "1", 10*time.Minute)
		b.Events = append(b.Events, heard("2", "app"))
		var got engine.Accepted
		w.must(w.do(func() (err error) { got, err = s.Accept(w.ctx, b); return err }))
		if w.form == persisted {
			items := w.pending(s, "i")
			got.LastSeq = items[len(items)-1].Seq
		}
		first := got.LastSeq - 1
		w.takes("an answer", term, w.answering(1, first, "conversation"), sealedAddress)
		w.takes("another one", term, w.answering(2, first, "conversation"), sealedAddress)
		w.takes("one to another conversation", term, w.answering(3, first, "elsewhere"), "")
		w.takes("an answer to another event", term, w.answering(4, got.LastSeq, "conversation"), "")
		w.takes("no answer", term, w.answering(5, 0, "conversation"), "")
	})

	r.promise(t, "one that is over does not come along, whenever the answer was posted", func(w *world) {
		s := w.node()
		term := w.hold("i")
		got, err := s.Accept(w.ctx, w.followed(term, "1", 10*time.Minute))
		w.must(err)
		seq := w.answering(1, got.LastSeq, "conversation")
		w.takes("in time", term, seq, sealedAddress)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, Error: "reset"}))
		w.clock.Step(10 * time.Minute)
		w.takes("tried again at its end", term, seq, "")
		w.takes("posted at its end", term, w.answering(2, got.LastSeq, "conversation"), "")
	})

	r.promise(t, "an event that comes again keeps the address that it came with", func(w *world) {
		s := w.node()
		term := w.hold("i")
		got, err := s.Accept(w.ctx, w.followed(term, "1", 10*time.Minute))
		w.must(err)
		again := w.followed(term, "1", time.Minute)
		again.Events[0].FollowUp = []byte("another")
		_, err = s.Accept(w.ctx, again)
		w.must(err)
		w.clock.Step(5 * time.Minute)
		w.takes("then", term, w.answering(1, got.LastSeq, "conversation"), sealedAddress)
	})

	r.promise(t, "a batch that is refused keeps none", func(w *world) {
		s := w.node()
		term := w.hold("i")
		stale := term
		stale.Epoch--
		if _, err := s.Accept(w.ctx, w.followed(stale, "1", time.Minute)); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("got %v, want ErrFenced", err)
		}
		w.clock.Step(time.Hour)
		swept, err := s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "addresses swept", swept.FollowUps, 0)
	})

	r.write(t, "the sweeper deletes an address when it is over, and with its event", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for n, id := range []string{"1", "2", "3", "4", "5"} {
			b := w.followed(term, id, time.Hour)
			b.Events[0].Targets = nil
			if n == 4 {
				b.Events[0].FollowUpUntil = w.clock.Now().Add(30 * day)
			}
			_, err := s.Accept(w.ctx, b)
			w.must(err)
		}
		w.clock.Step(time.Hour)
		swept, err := s.Sweep(w.ctx, week())
		if w.must(err); w.form != persisted {
			want(w, "those that are over", swept.FollowUps, 4)
		}
		w.clock.Step(8 * day)
		w.must(w.do(func() (err error) { swept, err = s.Sweep(w.ctx, week()); return err }))
		w.clock.Step(30 * day)
		swept, err = s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "what is left, after its event went", swept.FollowUps, 0)
	})
}
