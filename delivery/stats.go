package delivery

import (
	"slices"
	"strings"
	"time"
)

// Stats is what is known of all deliveries at this moment, from memory.
type Stats struct {
	Targets  []TargetStats
	Holds    int    // leases held
	Active   int    // of those, with deliveries that wait
	InFlight int    // calls that run
	Unmarked int    // outcomes that the store does not have yet
	Store    string // why it does not take them; "" = it does
}

// TargetStats is a target's part. The counts are since the start of the process.
type TargetStats struct {
	Name      string
	Kind      string
	State     CircuitState
	Reason    string
	Since     time.Time // of the state; zero = since the start
	NextProbe time.Time // when it is looked at again; zero = it is not down
	InFlight  int
	Delivered int64
	Failed    int64 // attempts that counted
	Dead      int64
	Waiting   int       // deliveries in memory; with More there are others
	More      bool      // in the store
	Oldest    time.Time // when the oldest of them in memory was accepted; zero = none waits

	Announcements int // system events that wait, in memory only

	LastError    string    // of the latest attempt that failed, redacted; "" = none did
	LastErrorAt  time.Time // zero = none did
	NextStep     string    // what a person does about it; "" = nothing is wrong
	FailingSince time.Time // the first failure with no success behind it; zero = the last attempt was taken
}

// Stats returns the state of all targets by name, those included that are named
// by deliveries but not configured.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{Holds: len(d.holds), Active: len(d.active), InFlight: d.inFlight, Unmarked: d.unmarked}
	if d.sick != nil {
		s.Store = d.sick.Error()
	}
	byName := map[string]*TargetStats{}
	for _, t := range d.order {
		ts := &TargetStats{
			Name: t.Name, Kind: t.Kind, State: t.state, Reason: t.reason, InFlight: t.inFlight,
			Delivered: t.delivered, Failed: t.failed, Dead: t.dead, LastError: t.lastError,
			NextStep: t.nextStep(),
		}
		if q := d.announced[t.Name]; q != nil {
			ts.Announcements = len(q.waiting)
		}
		if t.lastErrorAt != 0 {
			ts.LastErrorAt = t.lastErrorAt.time()
		}
		if t.failingSince != 0 {
			ts.FailingSince = t.failingSince.time()
		}
		if t.since != 0 {
			ts.Since = t.since.time()
		}
		if t.state == Open {
			ts.NextProbe = t.probeAt.time()
		}
		byName[t.Name] = ts
	}
	for _, h := range d.holds {
		for t, w := range h.windows {
			w.add(byName[t.Name])
		}
		for name, n := range h.strange {
			ts := byName[name]
			if ts == nil {
				ts = &TargetStats{Name: name, State: Unknown, Reason: "target not configured", NextStep: stepNameless + name}
				byName[name] = ts
			}
			ts.Waiting += n
		}
	}
	for _, ts := range byName {
		s.Targets = append(s.Targets, *ts)
	}
	slices.SortFunc(s.Targets, func(a, b TargetStats) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (w *window) add(s *TargetStats) {
	s.Waiting += w.n + len(w.parked)
	s.More = s.More || w.cut != 0 || w.lost != 0
	oldest := func(e *entry) {
		if t := e.accepted.time(); e.accepted != 0 && (s.Oldest.IsZero() || t.Before(s.Oldest)) {
			s.Oldest = t
		}
	}
	for _, e := range w.hold.busy {
		if e.flying && e.lane.window == w {
			s.Waiting++
			oldest(e)
		}
	}
	for _, l := range w.lanes {
		s.More = s.More || l.cut != 0
		if len(l.entries) > 0 {
			oldest(l.entries[0])
		}
	}
	for _, e := range w.parked {
		oldest(e)
	}
}
