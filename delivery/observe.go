package delivery

import "time"

// Observer is told of what people may want to know, as it happens. Its methods are
// called with the dispatcher's lock held: they neither block nor call it.
type Observer interface {
	// Target: the circuit of a target changed its state.
	Target(c TargetChange)
	// Died: a delivery was given up. It becomes a dead letter once that is stored.
	Died(l DeadLetter)
}

// TargetChange is a change of what is sent to a target.
type TargetChange struct {
	Target   string
	From, To CircuitState
	Reason   string // why it is not closed, redacted
	NextStep string // what a person does about it; "" = nothing
}

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	Target       string
	Delivery     string // its webhook id
	Event        string // evt_…; "" = the store does not have it any more
	Installation string
	Attempts     int
	Reason       string // redacted
	At           time.Time
}

// shift puts the circuit of a target into another state.
func (d *Dispatcher) shift(t *target, c circuit) {
	from := t.state
	t.circuit = c
	d.shifted(t, from)
}

// shifted tells that the circuit of a target was in another state before.
func (d *Dispatcher) shifted(t *target, from CircuitState) {
	if d.opts.Observer == nil || t.state == from {
		return
	}
	c := TargetChange{Target: t.Name, From: from, To: t.state, Reason: t.reason}
	if t.state != Closed {
		c.NextStep = t.nextStep()
	}
	d.opts.Observer.Target(c)
}

// died tells of a delivery that was given up.
func (d *Dispatcher) died(p *pick, reason string) {
	if d.opts.Observer == nil {
		return
	}
	l := DeadLetter{
		Target: p.target.Name, Delivery: p.entry.webhookID, Installation: p.lane.key.installation,
		Attempts: p.entry.attempts, Reason: reason, At: time.Now(),
	}
	if p.event != nil {
		l.Event, l.Installation = p.event.ID, p.event.Installation
	}
	d.opts.Observer.Died(l)
}
