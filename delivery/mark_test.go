package delivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestMarks(t *testing.T) {
	t.Run("outcomes share commits and are stored within 50 ms", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			for i := range 200 {
				box.say("acme", fmt.Sprint(i), "app")
			}
			b.hold("acme")
			time.Sleep(50 * time.Millisecond)
			same(t, "stored", box.count("app", Delivered), 200)
			if n := box.called("mark"); n > 5 {
				t.Errorf("got %d commits for 200 outcomes, want few", n)
			}
		})
	})

	t.Run("a store that takes nothing stops new calls and is never answered by a second delivery", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink, log := newOutbox(), &fakeSink{}, &logbook{}
			b := start(t, box, Options{Log: log.logger()}, Target{Name: "app", Sink: sink})
			village(box, 20, 1)
			box.setFault(fails, "mark")
			term := b.hold("acme")
			time.Sleep(time.Minute)
			same(t, "calls", len(sink.tries()), 20)
			village(box, 20, 1)
			b.Accepted(term, box.last())
			time.Sleep(time.Hour)
			same(t, "calls while the store takes nothing", len(sink.tries()), 20)
			same(t, "reason", b.Stats().Store, errFake.Error())
			same(t, "records of it", len(log.find("outcomes not stored")), 1)
			box.setFault(works)
			time.Sleep(10 * time.Second)
			same(t, "calls afterwards", len(sink.tries()), 40)
			same(t, "stored", box.count("app", Delivered), 40)
			same(t, "records of the end", len(log.find("outcomes stored again")), 1)
		})
	})

	t.Run("an outcome whose answer was lost is stored again, and delivered once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			village(box, 5, 4)
			box.setFault(persisted, "mark")
			b.hold("acme")
			time.Sleep(time.Minute)
			box.setFault(works)
			time.Sleep(time.Minute)
			same(t, "calls", len(sink.tries()), 20)
			same(t, "stored", box.count("app", Delivered), 20)
			same(t, "unmarked", b.Stats().Unmarked, 0)
			same(t, "reason", b.Stats().Store, "")
		})
	})

	t.Run("killed between the answer and the mark, the event comes again under the same id", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			first := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			box.say("acme", "C1", "app")
			box.setFault(fails, "mark")
			first.hold("acme")
			time.Sleep(time.Second)
			first.end()
			box.setFault(works)
			second := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			second.hold("acme")
			time.Sleep(time.Second)
			tries := sink.tries()
			same(t, "calls", len(tries), 2)
			same(t, "id of the second", tries[1].ID, tries[0].ID)
			same(t, "attempt of the second", tries[1].Attempt, 1)
			same(t, "stored", box.count("app", Delivered), 1)
		})
	})

	t.Run("a mark of an earlier grant is not written and not repeated", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			seq := box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(500 * time.Millisecond)
			box.grant("acme") // somebody else has it
			time.Sleep(time.Minute)
			same(t, "state", box.row(seq, "app").state, Pending)
			same(t, "marks tried", box.called("mark"), 1)
			same(t, "unmarked", b.Stats().Unmarked, 0)
		})
	})

	t.Run("a delivery that was dropped by a person is not sent any more once Wake was called", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: refuses("evt_1")}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(time.Second)
			box.change(1, "app", func(r *fakeRow) { r.state = Dropped })
			b.Wake("acme")
			time.Sleep(24 * time.Hour)
			same(t, "calls", len(sink.tries()), 1)
			same(t, "active leases", b.Stats().Active, 0)
		})
	})
}

func TestDrop(t *testing.T) {
	drop := func(t *testing.T, b *bench, term channel.Term, limit time.Duration) time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		began := time.Now()
		b.Drop(ctx, term)
		return time.Since(began)
	}

	t.Run("at rest it takes no time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: &fakeSink{}})
			term := b.hold("acme")
			same(t, "took", drop(t, b, term, time.Minute), 0)
			same(t, "leases held", b.Stats().Holds, 0)
		})
	})

	t.Run("a short call ends by itself and its outcome is stored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: takes(100 * time.Millisecond)}})
			village(box, 3, 2)
			term := b.hold("acme")
			time.Sleep(50 * time.Millisecond)
			same(t, "took", drop(t, b, term, time.Minute), 50*time.Millisecond)
			same(t, "stored when it returns", box.count("app", Delivered), 3)
		})
	})

	t.Run("an outcome that fails is stored, too, and leaves nothing in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				takes(100*time.Millisecond)(ctx, d)
				return Result{Outcome: Refused, Reason: "answered 400"}
			}}})
			village(box, 3, 2)
			term := b.hold("acme")
			time.Sleep(50 * time.Millisecond)
			drop(t, b, term, time.Minute)
			same(t, "attempts", box.row(1, "app").Attempts, 1)
			same(t, "entries in memory", b.entries(), 0)
			same(t, "active leases", b.Stats().Active, 0)
		})
	})

	t.Run("a grant that comes before the last was dropped ends its calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: takes(20 * time.Second)}})
			box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(time.Second)
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "calls that run", b.Stats().InFlight, 1)
			time.Sleep(time.Minute)
			same(t, "state", box.row(1, "app").state, Delivered)
		})
	})

	t.Run("a long call is broken off, which is no attempt, and nothing is written after", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(ctx context.Context, _ Delivery) Result {
				<-ctx.Done()
				return Result{Outcome: Broken, Reason: "does not know better"}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			village(box, 3, 2)
			term := b.hold("acme")
			time.Sleep(time.Second)
			same(t, "took", drop(t, b, term, time.Minute), dropGrace)
			noAttempts(t, box, "after Drop")
			marks := box.called("mark")
			time.Sleep(time.Hour)
			same(t, "calls to the store afterwards", box.called("mark"), marks)
			same(t, "calls that run", b.Stats().InFlight, 0)
		})
	})

	t.Run("a store that takes nothing holds it up no longer than its context, and is not written to after", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{}})
			village(box, 3, 1)
			box.setFault(fails, "mark")
			term := b.hold("acme")
			time.Sleep(time.Second)
			same(t, "took", drop(t, b, term, 2*time.Second), 2*time.Second)
			box.setFault(works)
			time.Sleep(time.Hour)
			same(t, "written afterwards", box.written(), 0)
			same(t, "unmarked", b.Stats().Unmarked, 0)

			other := box.say("other", "C1", "app") // the failure died with the lease
			b.hold("other")
			time.Sleep(time.Second)
			same(t, "state of another lease's event", box.row(other, "app").state, Delivered)
		})
	})

	t.Run("an ended context makes it return at once, and a sink that does not return holds nobody up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, release := newOutbox(), make(chan struct{})
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: func(context.Context, Delivery) Result {
				<-release
				return Result{Outcome: Taken}
			}}})
			box.say("acme", "C1", "app")
			term := b.hold("acme")
			time.Sleep(time.Second)
			same(t, "took", drop(t, b, term, 0), 0)
			again := b.hold("acme")
			time.Sleep(time.Second)
			close(release)
			time.Sleep(time.Second)
			same(t, "marked under the new grant only", box.written(), 1)
			same(t, "state", box.row(1, "app").state, Delivered)
			same(t, "took at rest", drop(t, b, again, time.Minute), 0)
		})
	})

	t.Run("a drop of an earlier grant does not touch the present one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{}})
			old := b.hold("acme")
			drop(t, b, old, time.Minute)
			now := b.hold("acme")
			drop(t, b, old, time.Minute)
			b.Accepted(now, box.say("acme", "C1", "app"))
			time.Sleep(time.Second)
			same(t, "state", box.row(1, "app").state, Delivered)
		})
	})

	t.Run("stopping breaks calls off, which is no attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: takes(time.Hour)}, Timeout: 2 * time.Hour})
			village(box, 30, 2)
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "calls", b.Stats().InFlight, 30)
			b.end()
			noAttempts(t, box, "after the end")
			if err := b.Run(t.Context()); err == nil {
				t.Error("got no error from a second Run, want one")
			}
		})
	})
}
