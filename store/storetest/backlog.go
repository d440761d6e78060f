package storetest

import (
	"fmt"
	"slices"
	"testing"

	"leasehold/delivery"
	"leasehold/store/maintenance"
)

// backlog is about how much waits, and what gives way.
func (r *runner) backlog(t *testing.T) {
	r.promise(t, "what waits is measured by events, each once however many targets it has", func(w *world) {
		s := w.node()
		waiting := func(when string, events, bytes int64) {
			w.Helper()
			got, err := s.Waiting(w.ctx)
			w.must(err)
			want(w, when, got, maintenance.Waiting{Events: events, Bytes: bytes})
		}
		waiting("at first", 0, 0)
		term, other := w.hold("i"), w.hold("j")
		b := batch(term, "1", "22", "333")
		size := func(n int) int64 { return int64(len(b.Events[n].Body)) }
		b.Events[0].Targets = []string{"app", "log"}
		b.Events[2].Targets = nil
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		waiting("after an accept", 2, size(0)+size(1))
		w.accept(other, "1")
		waiting("with another lease's", 3, size(0)+size(1)+size(0))
		first := w.pending(s, "i")[0]
		w.must(w.mark(s, delivered(term, first.Seq)))
		waiting("while one of its targets waits", 3, size(0)+size(1)+size(0))
		w.must(w.mark(s, delivery.Mark{Term: term, Seq: first.Seq, Target: "log", State: delivery.Dead, Count: true, Error: "refused"}))
		waiting("when none does", 2, size(1)+size(0))
	})

	r.promise(t, "the oldest give way, as many as are asked for, and nothing that has ended", func(w *world) {
		s := w.node()
		term, other := w.hold("i"), w.hold("j")
		w.accept(term, "1", "2")
		w.accept(other, "3")
		w.accept(term, "4", "5")
		items := w.pending(s, "i")
		w.must(w.mark(s, delivered(term, items[0].Seq)))
		size := int64(len(batch(term, "1").Events[0].Body))

		none, err := s.GiveWay(w.ctx, 0, "full")
		w.must(err)
		want(w, "given up for nothing", none.Events, 0)
		got, err := s.GiveWay(w.ctx, size+1, "full")
		w.must(err)
		want(w, "given up", fmt.Sprint(got), fmt.Sprint(maintenance.GivenUp{Events: 2, Deliveries: 2, Bytes: 2 * size, Leases: []string{"i", "j"}}))
		left := w.pending(s, "i")
		want(w, "left of i", fmt.Sprint(left[0].Seq, left[1].Seq, len(left)), fmt.Sprint(items[2].Seq, items[3].Seq, 2))
		want(w, "left of j", len(w.pending(s, "j")), 0)
		gone, err := s.Delivery(w.ctx, items[1].WebhookID)
		w.must(err)
		want(w, "what it says", gone.State+": "+gone.LastError, "dropped: full")
		want(w, "when", gone.GivenUpAt.Equal(w.clock.Now()), true)
		kept, err := s.Delivery(w.ctx, items[0].WebhookID)
		w.must(err)
		want(w, "one that was delivered", kept.State, "delivered")
		if err := w.mark(s, delivered(term, items[1].Seq)); err == nil {
			w.Error("got the mark of one that gave way written, want it fenced")
		}
		all, err := s.GiveWay(w.ctx, 1<<40, "full")
		w.must(err)
		want(w, "the rest", all.Events, 2)
	})

	r.write(t, "what gives way is gone for good", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2", "3", "4")
		size := int64(len(batch(term, "1").Events[0].Body))
		w.must(w.do(func() error {
			_, err := s.GiveWay(w.ctx, size, "full")
			return err
		}))
		wanted := []string{"2", "3", "4"}
		if w.form == persisted { // whoever does not know asks for as much again
			wanted = wanted[1:]
		}
		var left []string
		for _, i := range w.pending(s, "i") {
			e, err := s.Payloads(w.ctx, []int64{i.Seq})
			w.must(err)
			left = append(left, string(e[0].Body))
		}
		for n, id := range wanted {
			wanted[n] = fmt.Sprintf(`{"id":%q}`, id)
		}
		if !slices.Equal(left, wanted) {
			w.Errorf("got %v left, want %v", left, wanted)
		}
	})
}
