package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/engine"
)

// inParts takes a message up and fixes that it is sent as several.
func (w *world) inParts(t channel.Term, n int, parts ...string) int64 {
	w.Helper()
	seq := w.sending(t, n)
	body, err := outbound.EncodeLetter(outbound.Letter{Message: letter(n).Message, Parts: parts})
	w.must(err)
	w.must(w.s.EndSending(w.ctx, outbound.End{Term: t, Seq: seq, State: outbound.Sending, Body: body}))
	return seq
}

// progress is the receipt of the first parts of a message.
func progress(ids ...string) []byte {
	receipt := []byte(`{"message_id":"` + ids[0] + `","parts":[`)
	for i, id := range ids {
		if i > 0 {
			receipt = append(receipt, ',')
		}
		receipt = fmt.Appendf(receipt, `{"message_id":%q}`, id)
	}
	return append(receipt, "]}"...)
}

func (r *runner) parts(t *testing.T) {
	r.write(t, "the parts of a message are fixed while it is taken up", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.sending(term, 1)
		body, err := outbound.EncodeLetter(outbound.Letter{Message: letter(1).Message, Parts: []string{"one", "two <2>"}})
		w.must(err)
		w.must(w.do(func() error {
			return s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Sending, Body: body})
		}))
		m := w.is("state", "out_1", "sending")
		want(w, "parts that are shown", m.Parts, 2)
		want(w, "what was posted", m.Text+m.Format+string(m.Native), "text <1>markdown"+`{ "n": 1.50 }`)
		got, err := s.BeginSending(w.ctx, term, seq)
		w.must(err)
		want(w, "parts", fmt.Sprint(got.Parts), "[one two <2>]")
		want(w, "parts that were sent", len(got.Taken), 0)
	})

	r.write(t, "a message goes on behind the parts that were sent", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.inParts(term, 1, "one", "two", "three")
		err := w.do(func() error {
			return s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Queued, Receipt: progress("m1")})
		})
		if w.form == persisted {
			want(w, "answer to the repeat", errors.Is(err, outbound.ErrSettled), true)
		} else {
			w.must(err)
		}
		m := w.is("state", "out_1", "queued")
		want(w, "receipt", fmt.Sprint(m.Receipt.MessageID, " of ", len(m.Receipt.Parts)), "m1 of 1")
		want(w, "attempts", m.Attempts, 0)
		_, err = s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		term = w.begin(s, "a", "i") // another grant, perhaps with another config
		got, err := s.BeginSending(w.ctx, term, seq)
		w.must(err)
		want(w, "parts", fmt.Sprint(got.Parts), "[one two three]")
		want(w, "parts that were sent", fmt.Sprint(len(got.Taken), " as ", got.Taken[0].MessageID), "1 as m1")

		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Queued, Count: true, Error: "busy"}))
		got, err = s.BeginSending(w.ctx, term, seq)
		w.must(err)
		want(w, "parts that were sent, after a try that failed", len(got.Taken), 1)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Refused, Error: "part 2 of 3: no"}))
		m = w.is("state", "out_1", "refused")
		want(w, "receipt of what was refused then", len(m.Receipt.Parts), 1)
	})

	r.promise(t, "a part that was sent is no doubt any more", func(w *world) {
		s := w.node()
		term := w.hold("i")
		seq := w.inParts(term, 1, "one", "two")
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, Doubt: true}))
		_, err := s.BeginSending(w.ctx, term, seq)
		w.must(err)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Queued, Receipt: progress("m1")}))
		w.clock.Step(15 * time.Minute)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Expired, Error: "late"}))
		want(w, "why", w.is("state", "out_1", "refused").LastError, outbound.Partly)
	})

	r.promise(t, "what was sent in part is refused when its time is over, whoever finds that", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for n := range 3 {
			seq := w.inParts(term, n, "one", "two")
			w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: seq, State: outbound.Queued, Receipt: progress("m1")}))
		}
		all := w.outgoing("i")
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: all[0].Seq, State: outbound.Expired, Error: "late"}))
		w.clock.Step(15 * time.Minute)
		_, err := s.BeginSending(w.ctx, term, all[1].Seq)
		want(w, "taken up", errors.Is(err, outbound.ErrExpired), true)
		w.must(s.EndSession(w.ctx, "a"))
		_, err = s.Sweep(w.ctx, week())
		w.must(err)
		for n, what := range []string{"ended by its holder", "found when it was taken up", "ended by the sweeper"} {
			m := w.is(what, fmt.Sprint("out_", n), "refused")
			want(w, "why, "+what, m.LastError, outbound.Partly)
			want(w, "parts, "+what, len(m.Receipt.Parts), 1)
		}
	})
}
