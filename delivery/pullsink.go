package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"leasehold/internal/eventid"
)

// leasePrefix begins a lease.
const leasePrefix = "lse_"

// pullSink is where a program that cannot listen fetches its deliveries. A delivery is
// in flight from the pull or the stream that takes it until it is acknowledged, given
// back, or its time is over; so its lane waits for it as for any other call. There is
// one for each name, whatever becomes of its target: an acknowledgement is about what
// was handed out before a change, too.
type pullSink struct {
	ring func() // somebody asks: look at the lanes

	mu      sync.Mutex // guards what follows, and every puller
	asking  []*puller  // with room, the longest waiting first
	room    int        // over all of them
	leases  map[string]*lent
	laned   int                // leases that came out of lanes, not of announcements
	streams map[string]*puller // by name
}

// puller is whoever asks: one pull that waits, or a stream.
type puller struct {
	room int      // how many more it takes now
	got  []Leased // not fetched yet
	more chan struct{}

	stream string // names it in its leases; "" = a pull
	sent   uint64 // leases that it had; of a stream
	over   bool   // it gets nothing more; of a stream
}

// lent is a delivery that somebody has.
type lent struct {
	ended chan Result // has room for the one that it gets
	laned bool
	by    *puller // the stream that has it; nil = a pull
	n     uint64  // its place in that
}

// unheard ends a lease of which nobody ever heard.
var unheard = Result{Outcome: Aborted, Reason: "nobody took it"}

var errLeft = errors.New("whoever asked has left")

// wants reports whether one more delivery would be taken at once, when inFlight of
// them are on their way here or in somebody's hands.
func (s *pullSink) wants(inFlight int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room > inFlight-s.laned
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
	defer s.mu.Unlock()
	if s.end(token) == nil {
		return <-l.ended // at the last moment
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Result{Outcome: Aborted, Reason: "broken off"}
	}
	s.hangUp(l.by)
	return Result{Outcome: Refused, Reason: "pulled, and not acknowledged in time", NextStep: stepUnacked}
}

// lend hands d to whoever asks first; streams take turns.
func (s *pullSink) lend(d Delivery, until time.Time) (token string, l *lent, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asking) == 0 {
		return "", nil, errLeft
	}
	p := s.asking[0]
	s.asking = s.asking[1:]
	l = &lent{ended: make(chan Result, 1), laned: !eventid.IsSystem(d.EventID)}
	if token = leasePrefix + rand.Text(); p.stream != "" {
		p.sent++
		l.by, l.n = p, p.sent
		token = streamLease(p.stream, p.sent)
	}
	s.leases[token] = l
	if l.laned {
		s.laned++
	}
	p.got = append(p.got, Leased{Lease: token, Until: until, Delivery: d})
	s.room--
	p.room--
	switch {
	case p.room == 0:
	case p.stream != "":
		s.asking = append(s.asking, p)
	default:
		s.asking = slices.Insert(s.asking, 0, p)
	}
	p.hear()
	return token, l, nil
}

// hear tells a puller that something has come for it.
func (p *puller) hear() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// end takes a lease out of the books, and gives its stream the room again. nil: it was
// over already. The caller holds mu.
func (s *pullSink) end(token string) *lent {
	l := s.leases[token]
	if l == nil {
		return nil
	}
	delete(s.leases, token)
	if l.laned {
		s.laned--
	}
	if p := l.by; p != nil && !p.over {
		if p.room == 0 {
			s.asking = append(s.asking, p)
		}
		p.room++
		s.room++
		s.ring()
	}
	return l
}

// pull waits for deliveries until it has one, and a moment longer, or until ctx ends.
func (s *pullSink) pull(ctx context.Context, most int) []Leased {
	p := &puller{room: most, more: make(chan struct{}, 1)}
	s.mu.Lock()
	s.ask(p)
	s.mu.Unlock()
	select {
	case <-p.more:
		linger := time.NewTimer(pullLinger)
		defer linger.Stop()
		s.fill(ctx, p, linger.C)
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(p)
	return p.got
}

// ask has somebody wait for as many as he has room for. The caller holds mu.
func (s *pullSink) ask(p *puller) {
	s.asking = append(s.asking, p)
	s.room += p.room
	s.ring()
}

// leave ends that. The caller holds mu.
func (s *pullSink) leave(p *puller) {
	s.asking = slices.DeleteFunc(s.asking, func(x *puller) bool { return x == p })
	s.room -= p.room
	p.room = 0
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
		if !s.finish(token, r) {
			over = append(over, token)
		}
	}
	return over
}

// finish ends a lease with a result; false: it was over already. The caller holds mu.
func (s *pullSink) finish(token string, r Result) bool {
	l := s.end(token)
	if l == nil {
		return false
	}
	l.ended <- r
	return true
}
