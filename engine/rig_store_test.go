package engine_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

// faultyStore breaks calls in both ways: before they take effect, and after.
type faultyStore struct {
	engine.Store
	tick  func()     // before each call: the store's clock is the bubble's
	mu    sync.Mutex // guards rules
	rules map[string]storeRule
}

type storeRule struct {
	times     int // how many calls it breaks; negative = all
	err       error
	persisted bool // it takes effect all the same
	hang      bool // until the context ends
}

var errStoreDown = errors.New("connection refused")

func (s *faultyStore) breakNext(call string, r storeRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == nil {
		s.rules = map[string]storeRule{}
	}
	s.rules[call] = r
}

func (s *faultyStore) broken(ctx context.Context, call string, do func() error) error {
	s.tick()
	s.mu.Lock()
	r, ok := s.rules[call]
	if all, is := s.rules["*"]; is && !ok {
		r, ok, call = all, true, "*"
	}
	if ok && r.times == 0 {
		ok = false
	}
	if ok && r.times > 0 {
		r.times--
		s.rules[call] = r
	}
	s.mu.Unlock()
	if !ok {
		return do()
	}
	if r.persisted {
		if err := do(); err != nil {
			return err
		}
	}
	if r.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.err
}

func (s *faultyStore) OpenSession(ctx context.Context, r engine.SessionRequest) (got engine.Session, err error) {
	err = s.broken(ctx, "open", func() (err error) { got, err = s.Store.OpenSession(ctx, r); return })
	return got, err
}

func (s *faultyStore) RenewSession(ctx context.Context, id string, ttl time.Duration) (got engine.Session, err error) {
	err = s.broken(ctx, "renew", func() (err error) { got, err = s.Store.RenewSession(ctx, id, ttl); return })
	return got, err
}

func (s *faultyStore) Reap(ctx context.Context, notAfter time.Time) (got int, err error) {
	err = s.broken(ctx, "reap", func() (err error) { got, err = s.Store.Reap(ctx, notAfter); return })
	return got, err
}

func (s *faultyStore) List(ctx context.Context, known int64) (got engine.Snapshot, err error) {
	err = s.broken(ctx, "list", func() (err error) { got, err = s.Store.List(ctx, known); return })
	if errors.Is(err, errEmptyList) {
		return engine.Snapshot{Version: known + 1000}, nil
	}
	if errors.Is(err, errShortList) {
		got, err = s.Store.List(ctx, 0)
		got.Version += 1000
		got.Installations = got.Installations[1:]
	}
	return got, err
}

// errEmptyList makes a list come back empty and without an error.
var errEmptyList = errors.New("empty")

// errShortList makes it lack its first installation.
var errShortList = errors.New("short")

func (s *faultyStore) Claim(ctx context.Context, session string, ids []string) (got []engine.Grant, err error) {
	err = s.broken(ctx, "claim", func() (err error) { got, err = s.Store.Claim(ctx, session, ids); return })
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (s *faultyStore) BeginTerm(ctx context.Context, t channel.Term, identity string) (run int64, cursor []byte, err error) {
	err = s.broken(ctx, "begin", func() (err error) { run, cursor, err = s.Store.BeginTerm(ctx, t, identity); return })
	return run, cursor, err
}

func (s *faultyStore) Release(ctx context.Context, session string, held []engine.Held) (got []string, err error) {
	err = s.broken(ctx, "release", func() (err error) { got, err = s.Store.Release(ctx, session, held); return })
	return got, err
}

func (s *faultyStore) Accept(ctx context.Context, r engine.AcceptRequest) (got engine.Accepted, err error) {
	err = s.broken(ctx, "accept", func() (err error) { got, err = s.Store.Accept(ctx, r); return })
	return got, err
}

func (s *faultyStore) SaveBackoff(ctx context.Context, t channel.Term, b engine.Setback) error {
	return s.broken(ctx, "backoff", func() error { return s.Store.SaveBackoff(ctx, t, b) })
}

func (s *faultyStore) SaveStatus(ctx context.Context, b []engine.TermStatus) error {
	return s.broken(ctx, "status", func() error { return s.Store.SaveStatus(ctx, b) })
}

func (s *faultyStore) Probe(ctx context.Context) error {
	return s.broken(ctx, "probe", func() error { return s.Store.Probe(ctx) })
}
