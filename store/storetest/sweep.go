package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store/maintenance"
)

type channelTerm = channel.Term

const day = 24 * time.Hour

// week is a retention with pauses that a test can wait for.
func week() maintenance.Retention {
	return maintenance.Retention{Events: 7 * day, Dead: 30 * day, Batch: 3, Pause: time.Microsecond}
}

func (r *runner) sweep(t *testing.T) {
	r.write(t, "what is past its retention goes, with nothing that waits or died lately", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.letters(term) // 1 delivered, 2 dead, 3 dropped, 4 waiting
		w.clock.Step(7 * day)
		swept, err := s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "swept on the last day", swept.Idle(), true)
		w.clock.Step(time.Minute)
		w.accept(term, "5")
		w.must(w.mark(s, delivered(term, 5)))
		w.must(w.do(func() (err error) { swept, err = s.Sweep(w.ctx, week()); return err }))
		if w.form != persisted { // the counts were the answer that was lost
			want(w, "events", swept.Events, 2)
			want(w, "deliveries", swept.Deliveries, 2)
		}
		if ids := w.stored(s, "i"); !slices.Equal(ids, []string{"2", "4", "5"}) {
			w.Errorf("got events %v, want the dead, the waiting and the young", ids)
		}
		w.clock.Step(30 * day)
		_, err = s.Sweep(w.ctx, week())
		w.must(err)
		if ids := w.stored(s, "i"); !slices.Equal(ids, []string{"4"}) {
			w.Errorf("got events %v, want the one that waits", ids)
		}
	})

	r.promise(t, "a retention of zero keeps for ever", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.letters(term)
		w.clock.Step(1000 * day)
		forever := week()
		forever.Events = 0
		swept, err := s.Sweep(w.ctx, forever)
		w.must(err)
		want(w, "swept without a retention", swept.Idle(), true)
		dead := week()
		dead.Dead = 0
		_, err = s.Sweep(w.ctx, dead)
		w.must(err)
		if ids := w.stored(s, "i"); !slices.Equal(ids, []string{"2", "4"}) {
			w.Errorf("got events %v, want the dead and the waiting", ids)
		}
	})

	r.promise(t, "a seq is never given twice, not even after everything was swept", func(w *world) {
		s := w.node()
		term := w.hold("i")
		b := batch(term, "1", "2")
		b.Events[0].Targets, b.Events[1].Targets = nil, nil
		before, err := s.Accept(w.ctx, b)
		w.must(err)
		w.clock.Step(8 * day)
		swept, err := s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "events", swept.Events, 2)
		after := w.accept(term, "3")
		if after.LastSeq <= before.LastSeq {
			w.Errorf("got seq %d after %d, want a larger one", after.LastSeq, before.LastSeq)
		}
	})

	r.promise(t, "two sweepers beside each other drain everything, and count it once", func(w *world) {
		stores := []Store{w.node(), w.h.Open()}
		term := w.hold("i")
		for n := range 40 {
			b := batch(term, fmt.Sprint(n))
			b.Events[0].Targets = nil
			_, err := w.s.Accept(w.ctx, b)
			w.must(err)
		}
		w.clock.Step(8 * day)
		var mu sync.Mutex
		var wg sync.WaitGroup
		total := 0
		for _, s := range stores {
			wg.Go(func() {
				swept, err := s.Sweep(w.ctx, week())
				if err != nil {
					w.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				total += swept.Events
			})
		}
		wg.Wait()
		want(w, "events left", len(w.stored(w.s, "i")), 0)
		want(w, "events counted", total, 40)
	})

	r.promise(t, "a cycle ends with its budget, and the next one goes on", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for n := range 20 {
			b := batch(term, fmt.Sprint(n))
			b.Events[0].Targets = nil
			_, err := s.Accept(w.ctx, b)
			w.must(err)
		}
		w.clock.Step(8 * day)
		small := week()
		small.Budget = 6
		swept, err := s.Sweep(w.ctx, small)
		w.must(err)
		want(w, "events", swept.Events, 6)
		want(w, "more", swept.More, true)
		for range 4 {
			swept, err = s.Sweep(w.ctx, small)
			w.must(err)
		}
		want(w, "events left", len(w.stored(s, "i")), 0)
		want(w, "more at the end", swept.More, false)
	})

	r.write(t, "a removed installation goes once it is neither held nor has a backlog", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		w.must(s.RemoveInstallation(w.ctx, "i"))
		swept, err := s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "swept while it is held and has a backlog", swept.Installations, 0)
		w.must(w.mark(s, delivered(term, 1)))
		swept, err = s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "swept while it is held", swept.Installations, 0)
		_, err = s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		w.must(w.do(func() (err error) { swept, err = s.Sweep(w.ctx, week()); return err }))
		if w.form != persisted { // the count was the answer that was lost
			want(w, "swept", swept.Installations, 1)
		}
		want(w, "leases", len(w.snapshot(s).Leases), 0)
		want(w, "its events stay for their retention", len(w.stored(s, "i")), 1)
		got := w.put("i")
		want(w, "revision of a new one", got.Revision, 1)
		again := w.begin(s, "a", "i")
		if again.Epoch <= term.Epoch-1 {
			w.Errorf("got epoch %d, want one not below %d", again.Epoch, term.Epoch)
		}
	})

	r.promise(t, "a dead letter whose installation was swept is not replayed to nobody", func(w *world) {
		s := w.node()
		term := w.hold("i")
		ids := w.letters(term)
		w.must(w.mark(s, delivered(term, w.pending(s, "i")[0].Seq)))
		w.must(s.RemoveInstallation(w.ctx, "i"))
		_, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		_, err = s.Sweep(w.ctx, week())
		w.must(err)
		got, err := s.ReplayDeliveries(w.ctx, []string{ids["dead"]})
		w.must(err)
		want(w, "replayed", len(got), 0)
		_, err = s.Installation(w.ctx, "i")
		want(w, "installation is gone", fault.Is(err, fault.NotFound), true)
	})

	r.promise(t, "tending and auditing what is sound report nothing", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2", "3")
		_, err := s.Upkeep(w.ctx)
		w.must(err)
		got, err := s.Audit(w.ctx, 0)
		w.must(err)
		want(w, "violations", len(got.Violations), 0)
		want(w, "events", got.Events, 3)
		w.accept(term, "4")
		got, err = s.Audit(w.ctx, got.Through)
		w.must(err)
		want(w, "events since", got.Events, 1)
	})
}
