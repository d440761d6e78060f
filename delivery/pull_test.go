package delivery

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/fault"
)

// pulls makes one pull of "app" that waits for a second.
func pulls(t *testing.T, d *Dispatcher, most int) []Leased {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := d.Pull(ctx, "app", most)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func eventsOf(all []Leased) (ids []string) {
	for _, l := range all {
		ids = append(ids, l.EventID)
	}
	slices.Sort(ids)
	return ids
}

func leasesOf(all []Leased) (tokens []string) {
	for _, l := range all {
		tokens = append(tokens, l.Lease)
	}
	return tokens
}

func acknowledge(t *testing.T, d *Dispatcher, all []Leased) {
	t.Helper()
	over, err := d.Acknowledge("app", leasesOf(all))
	if err != nil {
		t.Fatal(err)
	}
	sameList(t, "leases that were over", over, nil)
	synctest.Wait()
}

// pulling runs f with a dispatcher that has a target to pull from.
func pulling(t *testing.T, name string, f func(t *testing.T, box *fakeOutbox, b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Kind: "pull"})
			f(t, box, b)
		})
	})
}

func TestPull(t *testing.T) {
	pulling(t, "one of each conversation is had at a time, and the next when it is acknowledged", func(t *testing.T, box *fakeOutbox, b *bench) {
		for _, c := range []string{"A", "A", "B", "A"} {
			box.say("acme", c, "app")
		}
		b.hold("acme")
		first := pulls(t, b.Dispatcher, 10)
		sameList(t, "first", eventsOf(first), evt(1, 3))
		same(t, "attempt", first[0].Attempt, 1)
		sameList(t, "while they are not acknowledged", eventsOf(pulls(t, b.Dispatcher, 10)), nil)
		acknowledge(t, b.Dispatcher, first)
		second := pulls(t, b.Dispatcher, 10)
		sameList(t, "second", eventsOf(second), evt(2))
		acknowledge(t, b.Dispatcher, second)
		third := pulls(t, b.Dispatcher, 10)
		sameList(t, "third", eventsOf(third), evt(4))
		acknowledge(t, b.Dispatcher, third)
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "delivered", box.count("app", Delivered), 4)
	})

	pulling(t, "what nobody asks for waits without an attempt, and a pull waits for what comes", func(t *testing.T, box *fakeOutbox, b *bench) {
		term := b.hold("acme")
		time.Sleep(time.Hour)
		go func() {
			time.Sleep(500 * time.Millisecond)
			b.Accepted(term, box.say("acme", "A", "app"))
		}()
		began := time.Now()
		got := pulls(t, b.Dispatcher, 1)
		sameList(t, "pulled", eventsOf(got), evt(1))
		same(t, "waited", time.Since(began).Round(100*time.Millisecond), 500*time.Millisecond)
		acknowledge(t, b.Dispatcher, got)
	})

	pulling(t, "no more are had than were asked for", func(t *testing.T, box *fakeOutbox, b *bench) {
		for _, c := range []string{"A", "B", "C", "D", "E"} {
			box.say("acme", c, "app")
		}
		b.hold("acme")
		first := pulls(t, b.Dispatcher, 2)
		same(t, "first", len(first), 2)
		second := pulls(t, b.Dispatcher, 2)
		same(t, "second", len(second), 2)
		third := pulls(t, b.Dispatcher, 2)
		sameList(t, "all", eventsOf(slices.Concat(first, second, third)), evt(1, 2, 3, 4, 5))
	})

	pulling(t, "what is not acknowledged in time is offered again as the same delivery, one attempt later", func(t *testing.T, box *fakeOutbox, b *bench) {
		box.say("acme", "A", "app")
		b.hold("acme")
		first := pulls(t, b.Dispatcher, 1)
		same(t, "time to acknowledge", time.Until(first[0].Until) > 28*time.Second, true)
		time.Sleep(40 * time.Second) // the lease's, and the first wait after a failure
		synctest.Wait()
		second := pulls(t, b.Dispatcher, 1)
		same(t, "pulled again", len(second), 1)
		same(t, "delivery", second[0].ID, first[0].ID)
		same(t, "attempt", second[0].Attempt, 2)
		over, err := b.Acknowledge("app", leasesOf(first))
		same(t, "error", err, nil)
		sameList(t, "the first lease is over", over, leasesOf(first))
		acknowledge(t, b.Dispatcher, second)
	})

	pulling(t, "what is given back is offered again after the wait that it asks for", func(t *testing.T, box *fakeOutbox, b *bench) {
		seq := box.say("acme", "A", "app")
		b.hold("acme")
		first := pulls(t, b.Dispatcher, 1)
		over, err := b.GiveBack("app", leasesOf(first), "the printer is out of paper", time.Minute)
		same(t, "error", err, nil)
		sameList(t, "over", over, nil)
		time.Sleep(55 * time.Second)
		same(t, "before", len(pulls(t, b.Dispatcher, 1)), 0)
		same(t, "reason", box.row(seq, "app").err, "given back: the printer is out of paper")
		time.Sleep(30 * time.Second)
		again := pulls(t, b.Dispatcher, 1)
		same(t, "afterwards", len(again), 1)
		same(t, "attempt", again[0].Attempt, 2)
	})

	pulling(t, "what was released, or nobody waited for any more, is no attempt", func(t *testing.T, box *fakeOutbox, b *bench) {
		box.say("acme", "A", "app")
		b.hold("acme")
		first := pulls(t, b.Dispatcher, 1)
		b.Release("app", first)
		synctest.Wait()
		again := pulls(t, b.Dispatcher, 1)
		same(t, "pulled again", len(again), 1)
		same(t, "attempt", again[0].Attempt, 1)
	})

	pulling(t, "the lease of an installation that goes elsewhere gives everything back, and what comes of it is over", func(t *testing.T, box *fakeOutbox, b *bench) {
		box.say("acme", "A", "app")
		term := b.hold("acme")
		first := pulls(t, b.Dispatcher, 1)
		b.Drop(t.Context(), term)
		over, err := b.Acknowledge("app", leasesOf(first))
		same(t, "error", err, nil)
		sameList(t, "over", over, leasesOf(first))
		same(t, "delivered", box.count("app", Delivered), 0)
		b.hold("acme")
		same(t, "pulled by the next holder", len(pulls(t, b.Dispatcher, 1)), 1)
	})

	t.Run("programs that pull and take nothing do not keep other targets from theirs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			for _, c := range []string{"A", "B", "C", "D"} {
				box.say("acme", c, "app", "hook")
			}
			b := start(t, box, Options{Total: 2}, Target{Name: "app", Kind: "pull"}, Target{Name: "hook", Sink: sink})
			b.hold("acme")
			same(t, "pulled", len(pulls(t, b.Dispatcher, 4)), 4)
			synctest.Wait()
			same(t, "sent to the other", len(sink.got()), 4)
		})
	})

	t.Run("an acknowledgement counts although the target was changed meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			box.say("acme", "A", "app")
			b := start(t, box, Options{}, Target{Name: "app", Kind: "pull"})
			b.hold("acme")
			got := pulls(t, b.Dispatcher, 1)
			b.set(Target{Name: "app", Kind: "pull", Concurrency: 3})
			acknowledge(t, b.Dispatcher, got)
			time.Sleep(time.Second)
			synctest.Wait()
			same(t, "delivered", box.count("app", Delivered), 1)
		})
	})

	t.Run("system events are pulled, too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Kind: "pull", Events: []string{"*", "system.*"}})
			b.Announce(Announcement{Type: "system.node", System: []byte(`{}`)})
			time.Sleep(time.Hour)
			got := pulls(t, b.Dispatcher, 5)
			same(t, "pulled", len(got), 1)
			same(t, "type", got[0].Type, "system.node")
			acknowledge(t, b.Dispatcher, got)
			same(t, "afterwards", len(pulls(t, b.Dispatcher, 5)), 0)
		})
	})

	t.Run("a target of another kind is not pulled from", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Kind: "log"})
			_, err := b.Pull(t.Context(), "app", 1)
			same(t, "another kind", fault.Of(err), fault.Invalid)
			_, err = b.Pull(t.Context(), "nobody", 1)
			same(t, "another name", fault.Of(err), fault.NotFound)
		})
	})
}

func TestOff(t *testing.T) {
	t.Run("a target that is off gets nothing until it is switched on, and loses nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			box.say("acme", "A", "app")
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Off: "answered 410"})
			b.hold("acme")
			time.Sleep(time.Hour)
			same(t, "sent", len(sink.got()), 0)
			same(t, "state", b.Stats().Targets[0].State, Disabled)
			same(t, "reason", b.Stats().Targets[0].Reason, "answered 410")
			_, changed, _ := b.set(Target{Name: "app", Sink: sink})
			sameList(t, "changed", changed, []string{"app"})
			synctest.Wait()
			same(t, "sent afterwards", len(sink.got()), 1)
		})
	})

	t.Run("one that was found to be off is as it was once others know, and works once it is on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var back atomic.Bool
			box, sink := newOutbox(), &fakeSink{answer: func(context.Context, Delivery) Result {
				if back.Load() {
					return Result{Outcome: Taken}
				}
				return Result{Outcome: Gone, Reason: "answered 410: gone"}
			}}
			box.say("acme", "A", "app")
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			b.hold("acme")
			time.Sleep(time.Minute)
			since := b.Stats().Targets[0].Since
			time.Sleep(time.Minute)
			_, changed, _ := b.set(Target{Name: "app", Sink: sink, Off: "answered 410: gone"})
			sameList(t, "changed", changed, nil)
			same(t, "since", b.Stats().Targets[0].Since, since)
			back.Store(true)
			b.set(Target{Name: "app", Sink: sink})
			time.Sleep(time.Minute)
			same(t, "delivered", box.count("app", Delivered), 1)
		})
	})
}
