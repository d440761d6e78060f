package delivery

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeClock is a clock that a test holds, and that leapt.
type fakeClock struct {
	mu     sync.Mutex
	held   string
	before time.Time // what was heard before it was heard by later
	by     time.Duration
}

func (c *fakeClock) Held() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

func (c *fakeClock) Heard(at time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.Before(c.before) {
		return at.Add(c.by)
	}
	return at
}

func (c *fakeClock) hold(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = why
}

func TestClock(t *testing.T) {
	down := func() *fakeSink { return &fakeSink{answer: alwaysDown} }
	const week = 7 * 24 * time.Hour

	t.Run("while the clock is not believed nothing dies of its age, and soon after it is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, clock := newOutbox(), &fakeClock{held: "it shows 1970"}
			b := start(t, box, Options{Clock: clock}, Target{Name: "app", Sink: down(), MaxAge: time.Hour})
			seq := box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(3 * time.Hour)
			same(t, "state while it is held", box.row(seq, "app").state, Pending)
			clock.hold("")
			time.Sleep(2 * sweepEvery)
			same(t, "state once it is believed", box.row(seq, "app").state, Dead)
		})
	})

	t.Run("what was heard before a leap of the clock is as old as the time that passed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(30 * 24 * time.Hour) // a bubble begins where clocks that were never set are
			box := newOutbox()
			clock := &fakeClock{before: time.Now().Add(-week + time.Hour), by: week}
			b := start(t, box, Options{Clock: clock}, Target{Name: "app", Sink: down()})
			seq, old := box.say("acme", "C1", "app"), box.say("acme", "C2", "app")
			box.change(seq, "app", func(r *fakeRow) { r.AcceptedAt = time.Now().Add(-week) }) // just now, by the clock of then
			box.change(old, "app", func(r *fakeRow) { r.AcceptedAt = time.Now().Add(-25 * time.Hour) })
			b.hold("acme")
			time.Sleep(23 * time.Hour)
			same(t, "state of what was heard before the leap", box.row(seq, "app").state, Pending)
			same(t, "state of what is old", box.row(old, "app").state, Dead)
			time.Sleep(2 * time.Hour)
			same(t, "state a day later", box.row(seq, "app").state, Dead)
		})
	})

	t.Run("attempts kill nothing within an hour of having been heard before a leap", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(30 * 24 * time.Hour) // a bubble begins where clocks that were never set are
			box := newOutbox()
			clock := &fakeClock{before: time.Now().Add(-week + time.Hour), by: week}
			b := start(t, box, Options{Clock: clock}, Target{Name: "app", Sink: &fakeSink{answer: refuses("evt_1")}, MaxAttempts: 2, MaxAge: 30 * 24 * time.Hour})
			seq := box.say("acme", "C1", "app")
			box.change(seq, "app", func(r *fakeRow) { r.AcceptedAt = time.Now().Add(-week) })
			b.hold("acme")
			time.Sleep(59 * time.Minute)
			same(t, "state before the hour", box.row(seq, "app").state, Pending)
			time.Sleep(2 * time.Minute)
			same(t, "state after the hour", box.row(seq, "app").state, Dead)
		})
	})

	t.Run("a wait that was stored by a clock far ahead is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			b := start(t, box, Options{}, Target{Name: "far", Sink: sink})
			far, near := box.say("acme", "C1", "far"), box.say("acme", "C2", "far")
			box.change(far, "far", func(r *fakeRow) { r.NextAttempt = time.Now().Add(4 * 365 * 24 * time.Hour) })
			box.change(near, "far", func(r *fakeRow) { r.NextAttempt = time.Now().Add(6 * time.Hour) })
			b.hold("acme")
			time.Sleep(time.Hour)
			same(t, "state of the one", box.row(far, "far").state, Delivered)
			same(t, "state of one that was right", box.row(near, "far").state, Pending)
		})
	})
}
