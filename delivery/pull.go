package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"leasehold/internal/fault"
)

const (
	// pullLinger is how long a pull that has something waits for more: the lanes hand
	// over one after the other, within a few milliseconds.
	pullLinger = 20 * time.Millisecond
	// PullMost is how many deliveries one pull may have.
	PullMost = 500
)

// Leased is a delivery in the hands of the program that pulled it.
type Leased struct {
	Lease string    // names it in Acknowledge and GiveBack
	Until time.Time // then it is offered again
	Delivery
}

// pullSink is where a program that cannot listen fetches its deliveries. A delivery is
// in flight from the pull that takes it until it is acknowledged, given back, or its
// time is over; so its lane waits for it as for any other call. There is one for each
// name, whatever becomes of its target: an acknowledgement is about what was handed
// out before a change, too.
type pullSink struct {
	ring func() // somebody asks: look at the lanes

	mu     sync.Mutex // guards what follows
	asking []*puller  // with room, the longest waiting first
	room   int        // over all of them
	leases map[string]*lent
}

// puller is one pull that waits.
type puller struct {
	room int
	got  []Leased
	more chan struct{}
}

// lent is a delivery that a puller has.
type lent struct{ ended chan Result }

var errLeft = errors.New("whoever asked has left")

// wants reports whether one more delivery would be taken at once, when inFlight of
// them are on their way here or in somebody's hands.
func (s *pullSink) wants(inFlight int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room > inFlight-len(s.leases)
}

// Deliver implements Sink: it returns when the delivery is settled. Without anybody
// who asks it is no attempt.
func (s *pullSink) Deliver(ctx context.Context, d Delivery) Result {
	until, _ := ctx.Deadline()
	token, l, err := s.lend(d, until)
	if err != nil {
		return Result{Outcome: Aborted, Reason: err.Error()}
	}
	select {
	case r := <-l.ended:
		return r
	case <-ctx.Done():
	}
	s.mu.Lock()
	delete(s.leases, token)
	s.mu.Unlock()
	select {
	case r := <-l.ended: // at the last moment
		return r
	default:
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Result{Outcome: Aborted, Reason: "broken off"}
	}
	return Result{Outcome: Refused, Reason: "pulled, and not acknowledged in time", NextStep: stepUnacked}
}

// lend hands d to whoever asks first.
func (s *pullSink) lend(d Delivery, until time.Time) (token string, l *lent, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asking) == 0 {
		return "", nil, errLeft
	}
	p := s.asking[0]
	token, l = "lse_"+rand.Text(), &lent{ended: make(chan Result, 1)}
	s.leases[token] = l
	p.got = append(p.got, Leased{Lease: token, Until: until, Delivery: d})
	s.room--
	if p.room--; p.room == 0 {
		s.asking = s.asking[1:]
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
	return token, l, nil
}

// pull waits for deliveries until it has one, and a moment longer, or until ctx ends.
func (s *pullSink) pull(ctx context.Context, most int) []Leased {
	p := &puller{room: most, more: make(chan struct{}, 1)}
	s.mu.Lock()
	s.asking = append(s.asking, p)
	s.room += most
	s.mu.Unlock()
	s.ring()
	select {
	case <-p.more:
		linger := time.NewTimer(pullLinger)
		defer linger.Stop()
		s.fill(ctx, p, linger.C)
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = slices.DeleteFunc(s.asking, func(x *puller) bool { return x == p })
	s.room -= p.room
	return p.got
}

// fill waits until p has all that it asked for, or until late.
func (s *pullSink) fill(ctx context.Context, p *puller, late <-chan time.Time) {
	for {
		s.mu.Lock()
		full := p.room == 0
		s.mu.Unlock()
		if full {
			return
		}
		select {
		case <-p.more:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settle ends leases with a result, and tells which of them were over already.
func (s *pullSink) settle(leases []string, r Result) (over []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range leases {
		l := s.leases[token]
		if l == nil {
			over = append(over, token)
			continue
		}
		delete(s.leases, token)
		l.ended <- r // it has room for one, and gets no other
	}
	return over
}

// pullSink is the sink of the targets of a name.
func (d *Dispatcher) pullSink(name string) *pullSink {
	s, _ := d.pulls.LoadOrStore(name, &pullSink{leases: map[string]*lent{}, ring: func() {
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
	s.settle(tokens, Result{Outcome: Aborted, Reason: "nobody took it"})
}
