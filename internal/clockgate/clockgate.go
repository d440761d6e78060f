// Package clockgate says how far the wall clock of this machine can be believed.
//
// A box without a real-time clock wakes up in 1970, or at the hour of its last
// shutdown, and learns the time from the network minutes later. What is counted in
// days must not be decided meanwhile: nothing is deleted, and nothing dies of its
// age. The gate says when, and opens by itself. When the clock then leaps ahead by
// a week, what was heard before the leap has not waited for a week: the gate knows
// by how much it leapt.
//
// It keeps no time, sets no clock, and cannot see that a clock which has always
// been wrong is wrong: beside the build time it knows nothing to compare with.
package clockgate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"leasehold/internal/loop"
)

const (
	// settleWithin is the time since the start of a machine without a clock of its own
	// in which one that the kernel calls unsynchronised is not believed. A box with a
	// network has the time within one or two minutes; one that has none must not be
	// held for ever.
	settleWithin = 5 * time.Minute
	// leapOver is the least step that is made good: above what is slewed or set by
	// hand in a day, far below every max_age.
	leapOver = 10 * time.Minute
	// lookEvery is how soon a change is seen, and between two looks no leap may be as
	// long as their distance: then what was heard before it could not be told from
	// what was heard after it.
	lookEvery = 5 * time.Second
)

// Options are where a Gate reads the time. The zero value is this machine.
type Options struct {
	// Built is before every moment at which the program can run; zero = not known.
	Built time.Time
	// Wall is the wall clock; nil = time.Now.
	Wall func() time.Time
	// Up is how long the machine has been on, sleep included; nil = the system's.
	// Where a system does not say, no leap is seen, and only Built holds.
	Up func() (d time.Duration, ok bool)
	// Unsynced reports that the kernel calls its clock unsynchronised; nil = the system's.
	Unsynced func() bool
	// Kept reports that something keeps the time while the machine is off: a clock with
	// a battery, or the host of a virtual machine. nil = the system's answer.
	Kept func(now time.Time) bool
}

// Gate is safe for concurrent use.
type Gate struct {
	o Options

	mu      sync.Mutex // guards what follows
	settled bool       // the time after the start is over, or the kernel has the time
	began   time.Time  // the wall clock's zero of Up, as last seen; zero = Up is not known
	leaps   []leap
}

// leap is a step of the clock ahead.
type leap struct {
	from, to time.Time // what was heard between them, by the clock of then, was heard before the step
	by       time.Duration
}

// New makes a Gate that has looked once.
func New(o Options) *Gate {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Up == nil {
		o.Up = up
	}
	if o.Unsynced == nil {
		o.Unsynced = unsynced
	}
	if o.Kept == nil {
		o.Kept = kept
	}
	g := &Gate{o: o}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
	return g
}

// Held returns why the clock is not believed now, for people; "" = it is.
func (g *Gate) Held() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.look()
}

// Heard returns when something was heard by the clock of now, of which the wall
// clock said then that it was at.
func (g *Gate) Heard(at time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
	for _, l := range g.leaps {
		if !at.Before(l.from) && !at.After(l.to) {
			at = at.Add(l.by)
		}
	}
	return at
}

// Run looks at the clocks until ctx ends, so that no leap goes unseen, and calls
// changed with what Held says, first at once if the clock is not believed, and
// then after each change.
func (g *Gate) Run(ctx context.Context, changed func(held string)) error {
	for was := ""; ctx.Err() == nil; _ = loop.Sleep(ctx, lookEvery) {
		if held := g.Held(); (held == "") != (was == "") {
			was = held
			changed(held)
		}
	}
	return nil
}

// look compares the clocks and returns why the wall clock is not believed.
func (g *Gate) look() string {
	now := g.o.Wall().Round(0) // the reading of the wall alone
	on, known := g.o.Up()
	if known {
		g.compare(now, on)
	}
	switch {
	case now.Before(g.o.Built):
		return fmt.Sprintf("it shows %s, before this program was built", now.UTC().Format(time.RFC3339))
	case g.settled:
	case !known, on >= settleWithin, !g.o.Unsynced(), g.o.Kept(now):
		g.settled = true
	default:
		return fmt.Sprintf("the machine started %s ago and has not learnt the time yet", on.Truncate(time.Second))
	}
	return ""
}

// compare finds a leap: the wall clock went further than the machine was on.
func (g *Gate) compare(now time.Time, on time.Duration) {
	began := now.Add(-on)
	by := began.Sub(g.began)
	if !g.began.IsZero() && by >= leapOver {
		g.leaps = append(g.leaps, leap{from: g.began, to: now.Add(-by), by: by})
	}
	g.began = began
}
