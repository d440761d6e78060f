package delivery

import (
	"context"
	"time"

	"leasehold/internal/fault"
)

const (
	// pullLinger is how long a pull that has something waits for more: the lanes hand
	// over one after the other, within a few milliseconds.
	pullLinger = 20 * time.Millisecond
	// PullMost is how many deliveries one pull may have, or one stream not acknowledged.
	PullMost = 500
)

// Leased is a delivery in the hands of the program that pulled it.
type Leased struct {
	Lease string    // names it in Acknowledge and GiveBack
	Until time.Time // then it is offered again
	Delivery
}

// pullSink is the sink of the targets of a name.
func (d *Dispatcher) pullSink(name string) *pullSink {
	s, _ := d.pulls.LoadOrStore(name, &pullSink{leases: map[string]*lent{}, streams: map[string]*puller{}, ring: func() {
		d.ring(d.dispatch)
		d.ring(d.announce)
	}})
	return s.(*pullSink)
}

// pulled is the sink of a target that is pulled now. The error is fault.NotFound, or
// fault.Invalid for one of another kind.
func (d *Dispatcher) pulled(name string) (*pullSink, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pulledNow(name)
}

// pulledNow is pulled for who holds mu.
func (d *Dispatcher) pulledNow(name string) (*pullSink, error) {
	t := d.targets[name]
	if t == nil {
		return nil, fault.Errorf(fault.NotFound, "there is no target %s; see leasehold targets list", name)
	}
	s, ok := t.sink.(*pullSink)
	if !ok {
		return nil, fault.Errorf(fault.Invalid, "target %s is not pulled: Leasehold brings its events to it; a target of type pull is", name)
	}
	return s, nil
}

// Pull takes up to most deliveries of a target of kind pull that can go now, each for
// the target's timeout. It waits for the first until ctx ends, and then returns none.
// Whoever gets them acknowledges each, or gives it back; until then nothing of its
// lane goes. The error is fault.NotFound or fault.Invalid.
func (d *Dispatcher) Pull(ctx context.Context, name string, most int) ([]Leased, error) {
	s, err := d.pulled(name)
	if err != nil {
		return nil, err
	}
	return s.pull(ctx, min(max(most, 1), PullMost)), nil
}

// Acknowledge ends deliveries that were pulled: they are delivered. It returns the
// leases that were over already: their deliveries are offered again, or were settled
// before.
func (d *Dispatcher) Acknowledge(name string, leases []string) (over []string, err error) {
	s, err := d.pulled(name)
	if err != nil {
		return nil, err
	}
	return s.settle(leases, Result{Outcome: Taken}), nil
}

// GiveBack ends deliveries that were pulled and could not be handled, which counts as
// an attempt at each; not before after they are offered again. See Acknowledge.
func (d *Dispatcher) GiveBack(name string, leases []string, reason string, after time.Duration) (over []string, err error) {
	s, err := d.pulled(name)
	if err != nil {
		return nil, err
	}
	r := Result{Outcome: Refused, Reason: "given back", After: min(after, retryAfterMax), NextStep: stepGivenBack}
	if reason != "" {
		r.Reason += ": " + short(reason, reasonLimit)
	}
	return s.settle(leases, r), nil
}

// Release ends leases of which nobody ever heard, as if they had not been pulled.
func (d *Dispatcher) Release(name string, all []Leased) {
	s, err := d.pulled(name)
	if err != nil {
		return // its calls are over, or end by their time
	}
	tokens := make([]string, len(all))
	for i, l := range all {
		tokens[i] = l.Lease
	}
	s.settle(tokens, unheard)
}
