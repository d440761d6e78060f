package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// Supervisor holds the connections of one node: the shell that runs a Core on a
// real store, real clocks and real channels.
type Supervisor struct {
	store  Store
	types  *channel.Types
	holder Holder
	o      Options
	log    *slog.Logger

	core  *Core // touched by Run's goroutine only
	trust trust
	mail  mailbox
	done  chan struct{}
	ops   sync.WaitGroup // store and holder calls on their way

	mu      sync.Mutex // guards what follows
	started bool
	terms   map[uint64]*term
	riders  map[string][]Installation
	links   map[string]*linkRecord
	node    nodeRecord

	statuses statusWriter
	fence    fenceTimer
}

// New makes a Supervisor. It touches nothing until Run.
func New(store Store, types *channel.Types, holder Holder, o Options) (*Supervisor, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	s := &Supervisor{
		store: store, types: types, holder: holder, o: o, log: o.Log,
		mail: newMailbox(), done: make(chan struct{}),
		terms: map[uint64]*term{}, riders: map[string][]Installation{}, links: map[string]*linkRecord{},
	}
	s.core = newCore(coreOptions{
		instance: o.Instance, previous: o.Previous, weight: o.Weight, sole: store.Sole(), timing: o.Timing,
		rate: o.Connect.PerTypeRate, inFlight: o.Connect.InFlight, rand: o.Rand,
		handOver: o.DrainTimeout * 3 / 4, // the rest is for goodbyes
		known:    func(name string) bool { _, ok := types.Lookup(name); return ok },
		offline:  func(name string) bool { spec, ok := types.Lookup(name); return ok && spec.Offline },
	})
	s.statuses.wake = make(chan struct{}, 1)
	s.fence.fire = s.killAll
	return s, nil
}

// NodeID is the instance id.
func (s *Supervisor) NodeID() string { return s.o.Instance }

// Trigger makes the node look at the store now.
func (s *Supervisor) Trigger() { s.mail.put(inWake{}) }

// Drain makes the node give up what it holds, politely, and hold nothing until
// Resume, while its process lives on: links end, leases are released, and the other
// nodes count it as one of no weight. It returns when that is stored, which outlives
// the process; Status tells how far it is: Drained, with Held leases left to release.
func (s *Supervisor) Drain(ctx context.Context) error { return s.setDrained(ctx, true) }

// Resume takes Drain back. It returns when that is stored.
func (s *Supervisor) Resume(ctx context.Context) error { return s.setDrained(ctx, false) }

func (s *Supervisor) setDrained(ctx context.Context, drained bool) error {
	err := s.store.DrainNode(ctx, s.o.Instance, drained)
	s.Trigger()
	return err
}

// Wait returns when Run has returned; at once when it was never called.
func (s *Supervisor) Wait() {
	if s.running() {
		<-s.done
	}
}

// WaitWithTimeout is Wait for at most d; false: it still runs.
func (s *Supervisor) WaitWithTimeout(d time.Duration) bool {
	if !s.running() {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.done:
		return true
	case <-t.C:
		return false
	}
}

func (s *Supervisor) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// Run holds what is this node's to hold until ctx ends; then it drains: terms
// end politely, leases are released, the session ends last. It returns nil after
// a drain that ctx asked for, else why the node cannot go on; the error's kind
// says how the process should end. A second call is an error.
func (s *Supervisor) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.started {
		s.mu.Unlock()
		return errors.New("engine: Run was called twice")
	}
	s.started = true
	s.mu.Unlock()
	defer close(s.done)

	watch, stopWatching := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	watchers.Go(func() { s.watchClock(watch) })
	watchers.Go(func() { s.watchStore(watch) })
	watchers.Go(func() { s.writeStatuses(watch) })
	err := s.turn(ctx)
	s.trust.set(0)
	s.killAll()
	stopWatching()
	watchers.Wait()
	s.settleOps()
	return err
}

// turn is the loop: what happened goes into the Core, what it answers is begun.
func (s *Supervisor) turn(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop := ctx.Done()
	var hurry, giveUp <-chan time.Time
	for {
		var inputs []Input
		select {
		case <-s.mail.ready:
			inputs = s.mail.take()
		case <-timer.C:
			inputs = []Input{inTick{}}
		case <-stop:
			stop, hurry = nil, time.After(s.o.DrainTimeout)
			s.log.InfoContext(ctx, "draining")
			inputs = []Input{inDrain{}}
		case <-hurry:
			hurry, giveUp = nil, time.After(s.o.Timing.AttemptTimeout+2*channel.Goodbye)
			inputs = []Input{inHurry{}}
		case <-giveUp:
			return fault.Errorf(fault.Temporary, "shutdown did not finish within %v; what was held is free once the session has expired", s.o.DrainTimeout)
		}
		for _, in := range inputs {
			for _, a := range s.core.Step(s.o.Clock.Boot(), in) {
				if exit, ok := a.(actExit); ok {
					return exit.err
				}
				s.do(a)
			}
		}
		s.noteNode()
		timer.Reset(s.untilNext())
	}
}

func (s *Supervisor) untilNext() time.Duration {
	next := s.core.Next()
	if next == Never {
		return time.Hour
	}
	return max(0, next.Sub(s.o.Clock.Boot()))
}

// settleOps waits for store and holder calls, each of which has a deadline.
func (s *Supervisor) settleOps() {
	finished := make(chan struct{})
	go func() { s.ops.Wait(); close(finished) }()
	t := time.NewTimer(s.o.Timing.AttemptTimeout + channel.Goodbye)
	defer t.Stop()
	select {
	case <-finished:
	case <-t.C:
		s.log.Error("a store call did not return", "waited", s.o.Timing.AttemptTimeout+channel.Goodbye)
	}
}

// mailbox is an unbounded queue of inputs: whoever reports never waits for the
// Core. Each term has at most a handful of reports under way.
type mailbox struct {
	ready chan struct{}
	mu    *sync.Mutex // guards items
	items *[]Input
}

func newMailbox() mailbox {
	return mailbox{ready: make(chan struct{}, 1), mu: &sync.Mutex{}, items: &[]Input{}}
}

func (m mailbox) put(in Input) {
	m.mu.Lock()
	*m.items = append(*m.items, in)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

func (m mailbox) take() []Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := *m.items
	*m.items = nil
	return items
}
