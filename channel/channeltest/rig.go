package channeltest

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

// target is where every event of the suite goes; nobody takes it there.
const target = "app"

// holder is a Holder behind which nothing is ever delivered: a program that takes
// nothing, as slow as one can be.
// It keeps who speaks for the connection.
type holder struct {
	mu     sync.Mutex // guards sender
	sender channel.Sender
}

var _ engine.Holder = (*holder)(nil)

func (h *holder) Hold(channel.Term)                             {}
func (h *holder) Targets(channel.Term, *channel.Event) []string { return []string{target} }
func (h *holder) Accepted(channel.Term, int64)                  {}
func (h *holder) Drop(context.Context, channel.Term)            {}

func (h *holder) Live(_ channel.Term, s channel.Sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sender = s
}

// live is who speaks for the connection; nil = nobody.
func (h *holder) live() channel.Sender {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sender
}

func (h *holder) Ask(ctx context.Context, _ channel.Term, _ channel.Event) (json.RawMessage, bool) {
	<-ctx.Done()
	return nil, false
}

// sleepyClock is a node's clock on a machine that can be put to sleep.
type sleepyClock struct {
	engine.Clock
	slept atomic.Int64
}

func (c *sleepyClock) Boot() engine.Instant {
	return c.Clock.Boot().Add(time.Duration(c.slept.Load()))
}

// stepWatch takes note of the protocol's steps, and acts at one of them, once.
type stepWatch struct {
	mu   sync.Mutex // guards what follows
	seen map[string]int
	at   string
	act  func()
}

func (s *stepWatch) saw(name string) {
	s.mu.Lock()
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	s.seen[name]++
	var act func()
	if name == s.at {
		act, s.act = s.act, nil
	}
	s.mu.Unlock()
	if act != nil {
		act()
	}
}

// when has act called at the next step of that name.
func (s *stepWatch) when(name string, act func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.act = name, act
}

func (s *stepWatch) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name]
}

// brokenStore breaks commits in both ways: before they take effect, and after.
type brokenStore struct {
	engine.Store

	mu     sync.Mutex // guards what follows
	before error      // fails commits and probes
	after  func() error
}

// refuse makes every commit and probe fail, nil none.
func (s *brokenStore) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = err
}

// once has f called after the next commit, whose result is f's.
func (s *brokenStore) once(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

// Accept commits, unless it is told not to.
func (s *brokenStore) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return engine.Accepted{}, before
	}
	got, err := s.Store.Accept(ctx, r)
	s.mu.Lock()
	after := s.after
	s.after = nil
	s.mu.Unlock()
	if err == nil && after != nil {
		if err = after(); err != nil {
			return engine.Accepted{}, err
		}
	}
	return got, err
}

// Probe probes, unless it is told not to.
func (s *brokenStore) Probe(ctx context.Context) error {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return before
	}
	return s.Store.Probe(ctx)
}
