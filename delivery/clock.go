package delivery

import (
	"context"
	"time"
)

const (
	// clockMax is the longest sleep while anything waits. Timers stand still while
	// the machine sleeps; what is due by the wall clock is found this soon after.
	clockMax = 15 * time.Second
	// sweepEvery is how often every lane that is not at rest is looked at, whatever
	// its alarm says.
	sweepEvery = 30 * time.Second
	// rereadEvery is how often what waits is compared with the store, by reading it
	// again. A change that nobody told us of takes effect this late.
	rereadEvery = 10 * time.Minute
)

// runClock wakes what is due until ctx ends.
func (d *Dispatcher) runClock(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	swept := now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.clock:
		case <-timer.C:
		}
		d.mu.Lock()
		now := now()
		if now >= swept.add(d.limits.sweep) || now < swept { // or the clock was set back
			swept = now
			d.sweep(now)
		}
		next, set := d.alarms.due(now)
		busy := len(d.active) > 0
		d.mu.Unlock()
		switch {
		case set:
			timer.Reset(min(clockMax, time.Duration(next-now)*time.Millisecond))
		case busy:
			timer.Reset(clockMax)
		default:
			timer.Stop()
		}
	}
}

// sweep puts every lane where it belongs, and has old memory read again.
func (d *Dispatcher) sweep(now instant) {
	for h := range d.active {
		for _, w := range h.windows {
			for _, l := range w.lanes {
				l.check(now)
			}
			w.unpark(now)
			h.tidy(w)
		}
		if now >= h.reread.add(d.limits.reread) || now < h.reread {
			h.refresh()
		}
	}
}
