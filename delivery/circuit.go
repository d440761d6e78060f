package delivery

import (
	"context"
	"log/slog"
	"time"
)

// CircuitState is whether anything is sent to a target.
type CircuitState string

// The states of a target's circuit.
const (
	Closed   CircuitState = "closed"   // deliveries go
	Open     CircuitState = "open"     // they wait; one at a time is sent to see whether the target is back
	Disabled CircuitState = "disabled" // it answered 410, or is Off: nothing is sent until it is changed, revived or switched on
	Unknown  CircuitState = "unknown"  // no target of that name is configured; its deliveries are kept
)

// circuit keeps apart what fails because of the target and what fails because
// of the event. It opens at once when the target cannot be reached or asks to be
// left alone, and when a row of different events failed alike, because a handler
// that is broken for everybody is an outage and no fault of theirs.
type circuit struct {
	state   CircuitState
	reason  string
	since   instant
	outage  bool // opened by a row of failures
	fails   int  // looks in a row that found it down
	probing bool // one is on its way
	probeAt instant
	row     []setback // the latest failures with nothing else between, one per event
}

// setback is an event in a row of failures.
type setback struct {
	hold  *hold
	seq   int64
	lane  laneKey
	slow  bool
	count int // its attempts in this row
}

// admits reports whether the target may be called now, and whether the call is a probe.
func (c *circuit) admits(now instant) (ok, probe bool) {
	switch {
	case c.state == Closed:
		return true, false
	case c.state == Open && !c.probing && now >= c.probeAt:
		return true, true
	default:
		return false, false
	}
}

// judge takes in what an attempt says of the target. It reports whether the
// attempt counts against its event, and returns what to log, after the lock.
func (d *Dispatcher) judge(ctx context.Context, p *pick, r Result, now instant) (counts bool, say func()) {
	t := p.target
	t.note(r, now)
	open, outage := t.state == Open, t.state == Open && t.outage
	switch {
	case r.Outcome == Taken:
		t.row = nil
		return true, d.closeCircuit(ctx, t, now)
	case t.state == Disabled:
		return false, nil
	case r.Outcome == Gone:
		return false, d.disable(ctx, t, r, now)
	case r.Outcome == Aborted:
		if p.probe {
			d.ring(d.dispatch)
		}
		return false, nil
	case r.Outcome == Down:
		if open && !p.probe {
			d.leaveAlone(t, r, now)
			return false, nil
		}
		return false, d.openCircuit(ctx, t, r, now, false)
	case r.Outcome == Refused:
		t.row = nil
		if p.probe {
			say = d.closeCircuit(ctx, t, now)
		}
		return true, say
	case outage && p.probe: // Broken or Slow, as all that follows
		return false, d.stillOut(ctx, p, r, now)
	case open && !p.probe:
		return false, nil // it was on its way when the target went down
	case p.probe: // it can be reached again
		say = d.closeCircuit(ctx, t, now)
	}
	if t.lengthen(p, r) {
		return false, d.openCircuit(ctx, t, r, now, true)
	}
	return true, say
}

// lengthen adds a failure to the row and reports whether that makes it an outage:
// then the last attempt does not count, and is not to be given back either. A row
// of time-outs in one lane is none: it is a slow conversation.
func (t *target) lengthen(p *pick, r Result) bool {
	s := setback{hold: p.hold, seq: p.entry.seq, lane: p.lane.key, count: 1}
	for i, old := range t.row {
		if old.hold == s.hold && old.seq == s.seq {
			s.count += old.count
			t.row = append(t.row[:i:i], t.row[i+1:]...)
			break
		}
	}
	s.slow = r.Outcome == Slow
	t.row = append(t.row, s)
	if len(t.row) > rowLength {
		t.row = t.row[1:]
	}
	if len(t.row) < rowLength {
		return false
	}
	for _, other := range t.row {
		if !other.slow || other.lane != s.lane || other.hold != s.hold {
			t.row[len(t.row)-1].count--
			return true
		}
	}
	return false
}

// openCircuit lets the target's deliveries wait, and plans the next look.
func (d *Dispatcher) openCircuit(ctx context.Context, t *target, r Result, now instant, outage bool) func() {
	from := t.state
	t.state, t.reason, t.outage = Open, r.Reason, outage
	t.fails++
	t.probeAt = now
	if r.After == 0 {
		t.probeAt = now.add(probeWait(t.fails, d.random))
	}
	d.leaveAlone(t, r, now)
	row := t.row
	t.row = nil
	for _, s := range row {
		d.giveBack(t, s, now)
	}
	if from == Open {
		return nil
	}
	t.since = now
	d.shifted(t, from)
	until := t.probeAt
	return func() {
		d.log.LogAttrs(ctx, slog.LevelInfo, "circuit open", slog.String("target", t.Name), slog.String("reason", r.Reason),
			slog.Bool("outage", outage), slog.Time("until", until.time()))
	}
}

// leaveAlone sets the alarm for the next look, not before what the target has said.
func (d *Dispatcher) leaveAlone(t *target, r Result, now instant) {
	if r.After > 0 {
		t.probeAt = max(t.probeAt, now.add(toldWait(r.After, d.random)))
	}
	d.alarms.set(&t.alarm, t.probeAt, func() { d.ring(d.dispatch) })
}

// stillOut plans the next look at a target whose handler is broken. An event
// that fails every time must not be taken for the outage for ever: when it is
// the only one to probe with, and its lane may pass it, the next in its lane is
// tried right behind it.
func (d *Dispatcher) stillOut(ctx context.Context, p *pick, r Result, now instant) func() {
	t := p.target
	p.entry.probes++
	alone := t.ready.len() == 0 && len(p.lane.entries) > 0 && !p.hold.leaving
	if alone && !p.second && p.entry.probes >= quickTries && t.OnFailure == Skip && t.Order != Unordered {
		t.second = p.lane
		d.ring(d.dispatch)
		return nil
	}
	return d.openCircuit(ctx, t, r, now, true)
}

func (d *Dispatcher) closeCircuit(ctx context.Context, t *target, now instant) func() {
	if t.state != Open {
		return nil
	}
	down := time.Duration(now-t.since) * time.Millisecond
	d.shift(t, circuit{state: Closed, since: now})
	t.second = nil
	d.alarms.stop(&t.alarm)
	d.ring(d.dispatch)
	return func() {
		d.log.LogAttrs(ctx, slog.LevelInfo, "circuit closed", slog.String("target", t.Name), slog.Float64("open_s", down.Seconds()))
	}
}

func (d *Dispatcher) disable(ctx context.Context, t *target, r Result, now instant) func() {
	d.shift(t, circuit{state: Disabled, reason: r.Reason, since: now})
	d.alarms.stop(&t.alarm)
	return func() {
		d.log.LogAttrs(ctx, slog.LevelWarn, "target disabled", slog.String("target", t.Name), slog.String("reason", r.Reason),
			slog.String("next_step", stepAgain))
	}
}

// giveBack undoes the attempts that an outage used up, and lets their event go
// again, at its place in the lane, when the target is back.
func (d *Dispatcher) giveBack(t *target, s setback, now instant) {
	h, r := s.hold, row{s.seq, t.Name}
	if h.leaving {
		return // the next holder begins with what is stored
	}
	e := h.busy[r]
	if w := h.windows[t]; e == nil && w != nil {
		e = w.find(s.seq)
	}
	if e == nil { // only in the store; see offer for how its lane waits for it
		e = &entry{seq: s.seq, absent: true}
	}
	e.attempts = max(0, e.attempts-s.count)
	e.back += s.count
	if e.lane != nil {
		if e.flying {
			return // its outcome will say so
		}
		e.due = 0
		e.lane.window.recall(e, now)
	}
	if !e.marking {
		d.returnAttempts(h, r, e)
	}
}

// returnAttempts stores what is to be given back.
func (d *Dispatcher) returnAttempts(h *hold, r row, e *entry) {
	e.marking = true
	h.work(r, e)
	reason := e.noted
	if t := d.targets[r.target]; t != nil {
		reason = t.reason
	}
	d.push(&outcome{hold: h, entry: e, row: r, mark: Mark{Back: e.back, Error: reason}})
	e.back = 0
}
