package delivery

import "time"

// Clock says how far the wall clock can be believed. A box that woke up in 1970
// must not let anything die of its age, and when it learns the time, what waits has
// not waited since then.
type Clock interface {
	// Held returns why the clock is not believed now; "" = it is.
	Held() string
	// Heard returns when something was accepted by the clock of now, of which the
	// clock of then said that it was at.
	Heard(at time.Time) time.Time
}

// expiry is when an entry dies of its age; 0 = not as things are now. The clock is
// asked only of what would die.
func (w *window) expiry(e *entry, now instant) instant {
	d, dies := w.hold.d, w.target.expiry(e)
	switch {
	case dies == 0, dies > now, d.opts.Clock == nil:
		return dies
	case d.opts.Clock.Held() != "":
		return 0 // the next sweep asks again
	default:
		return d.heard(e).add(w.target.MaxAge)
	}
}

// heard is when the event of an entry was accepted, by the clock of now.
func (d *Dispatcher) heard(e *entry) instant {
	if d.opts.Clock == nil {
		return e.accepted
	}
	return at(d.opts.Clock.Heard(e.accepted.time()))
}

// waitMax is more than any wait that a delivery is given.
const waitMax = 12 * time.Hour

// dueOf is when a stored delivery is to be tried again. What is further away was
// written by a clock that was ahead, and is due.
func dueOf(i *Item, now instant) instant {
	if due := at(i.NextAttempt); due <= now.add(waitMax) {
		return due
	}
	return 0
}
