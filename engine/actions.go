package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// do begins an action. It never blocks: what waits for a store, a holder or a
// channel does so in a goroutine, and answers by mail.
func (s *Supervisor) do(a Action) {
	switch a := a.(type) {
	case actTrust:
		s.trust.set(a.fence)
		s.fence.set(a.fence, s.o.Clock)
	case actOpen, actRenew, actDrainSession, actEndSession, actReap:
		s.doSession(a)
	case actList:
		s.call(func(ctx context.Context) {
			snap, err := s.store.List(ctx, a.known)
			s.mail.put(inListed{a.seq, snap, err})
		})
	case actClaim:
		s.call(func(ctx context.Context) {
			grants, err := s.store.Claim(ctx, a.session, a.ids)
			s.mail.put(inClaimed{a.gen, a.ids, grants, s.heard(err)})
		})
	case actRelease:
		s.call(func(ctx context.Context) {
			_, err := s.store.Release(ctx, a.session, a.held)
			s.mail.put(inReleased{a.gen, a.held, s.heard(err)})
		})
	case actBackoff:
		s.call(func(ctx context.Context) {
			err := s.store.SaveBackoff(ctx, a.t, a.b)
			s.mail.put(inSaved{a.t.Installation, a.t.Epoch, err})
		})
	case actProbe:
		s.call(func(ctx context.Context) { s.mail.put(inStore{s.probed(s.store.Probe(ctx))}) })
	case actHold:
		s.holder.Hold(a.term)
	case actDrop:
		s.drop(a.term)
	case actBegin:
		s.begin(a)
	case actEnd:
		s.withTerm(a.term, func(t *term) { t.cancel(a.cause) })
	case actKill:
		s.withTerm(a.term, func(t *term) {
			t.kill()
			s.mail.put(inClosed(a))
		})
	case actSuccessor:
		s.withTerm(a.term, func(t *term) { t.grantSuccessor() })
	case actStatus:
		s.setStatus(a)
	case actRows:
		s.setRows(a.rows)
	default:
		panic(fmt.Sprintf("engine: unknown action %T", a))
	}
}

func (s *Supervisor) doSession(a Action) {
	switch a := a.(type) {
	case actOpen:
		sent := s.o.Clock.Boot()
		s.call(func(ctx context.Context) {
			in := inSession{gen: a.gen, sentAt: sent}
			if in.err = s.o.OnSession(a.id); in.err == nil {
				var got Session
				got, in.err = s.store.OpenSession(ctx, SessionRequest{
					ID: a.id, Instance: s.o.Instance, Previous: a.previous, Host: s.o.Host, TTL: s.o.Timing.TTL,
					Weight: s.o.Weight, Name: s.o.Name, Version: s.o.Version,
				})
				in.now = got.Now
			}
			if in.err != nil {
				s.log.WarnContext(ctx, "open session failed", "error", in.err)
			}
			s.mail.put(in)
		})
	case actRenew:
		sent := s.o.Clock.Boot()
		s.call(func(ctx context.Context) {
			got, err := s.store.RenewSession(ctx, a.id, s.o.Timing.TTL)
			if err != nil {
				s.log.WarnContext(ctx, "renew session failed", "error", err)
			}
			s.mail.put(inSession{gen: a.gen, renew: true, sentAt: sent, now: got.Now, err: err})
		})
	case actReap:
		s.call(func(ctx context.Context) {
			n, err := s.store.Reap(ctx, a.notAfter(s.o.Clock.Boot()))
			if err != nil {
				s.log.WarnContext(ctx, "reap sessions failed", "error", err)
			}
			if n > 0 { // what they held is free now
				s.log.InfoContext(ctx, "reaped sessions", "count", n)
				s.mail.put(inWake{})
			}
		})
	case actDrainSession:
		s.call(func(ctx context.Context) {
			err := s.store.DrainSession(ctx, a.id)
			if err != nil && !errors.Is(err, ErrSessionGone) { // a short drain is over before it is marked
				s.log.WarnContext(ctx, "mark session as draining failed", "error", err)
			}
		})
	case actEndSession:
		s.call(func(ctx context.Context) {
			err := s.store.EndSession(ctx, a.id)
			if err != nil {
				s.log.WarnContext(ctx, "end session failed", "error", err)
			}
			s.mail.put(inEnded{err})
		})
	}
}

// call runs f with the deadline of one store attempt, in a goroutine of its own.
// No caller's context bounds it: a lease call that somebody else gave up is one
// whose outcome nobody knows.
func (s *Supervisor) call(f func(ctx context.Context)) {
	s.ops.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Timing.AttemptTimeout)
		defer cancel()
		f(ctx)
	})
}

// heard tells the Core when an error means that the store takes nothing.
func (s *Supervisor) heard(err error) error {
	if fault.Store(err) {
		s.mail.put(inStore{err})
	}
	return err
}

// probed turns any failure of a probe into a store that takes nothing.
func (s *Supervisor) probed(err error) error {
	if err == nil || fault.Store(err) {
		return err
	}
	return fault.Wrap(fault.ReadOnly, err)
}

func (s *Supervisor) drop(t channel.Term) {
	s.ops.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), channel.Goodbye)
		defer cancel()
		s.holder.Drop(ctx, t)
		s.mail.put(inDropped{t.Installation, t.Epoch})
	})
}

func (s *Supervisor) begin(a actBegin) {
	t := newTerm(s, a)
	s.mu.Lock()
	s.terms[a.term] = t
	s.mu.Unlock()
	go t.live() // owned by the Core: it ends, or is abandoned and counted
}

func (s *Supervisor) withTerm(n uint64, f func(*term)) {
	s.mu.Lock()
	t := s.terms[n]
	s.mu.Unlock()
	if t != nil {
		f(t)
	}
}

// forget drops a term whose goroutines have all returned.
func (s *Supervisor) forget(n uint64) {
	s.mu.Lock()
	delete(s.terms, n)
	s.mu.Unlock()
}

// killAll closes every socket of the node, gates first. It runs at the fence,
// from the timer and from the pause watch, and waits for no queue.
func (s *Supervisor) killAll() {
	s.mu.Lock()
	terms := make([]*term, 0, len(s.terms))
	for _, t := range s.terms {
		terms = append(terms, t)
	}
	s.mu.Unlock()
	for _, t := range terms {
		t.gate.close()
	}
	for _, t := range terms {
		t.kill()
	}
}

func (s *Supervisor) setRows(rows []Installation) {
	riders := map[string][]Installation{}
	for _, r := range rows {
		if r.Via != "" && r.Enabled && !r.Removed {
			riders[r.Via] = append(riders[r.Via], r)
		}
	}
	s.mu.Lock()
	s.riders = riders
	s.mu.Unlock()
}

// begun is the store's part of a term's begin; any error ends the term.
func (s *Supervisor) begun(t channel.Term, identity string) (int64, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Timing.AttemptTimeout)
	defer cancel()
	run, cursor, err := s.store.BeginTerm(ctx, t, identity)
	switch {
	case err == nil:
		return run, cursor, nil
	case errors.Is(err, ErrFenced):
		s.mail.put(inFenced{t.Installation, t.Epoch})
		return 0, nil, err
	default:
		return 0, nil, fmt.Errorf("%w: begin a term: %w", channel.ErrStore, s.heard(err))
	}
}

// fenceTimer closes every socket when trust ends, without asking the Core.
type fenceTimer struct {
	timer *time.Timer
	fire  func()
}

func (f *fenceTimer) set(fence Instant, clock Clock) {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if fence == Never || fence == 0 {
		return
	}
	f.timer = time.AfterFunc(max(0, fence.Sub(clock.Boot())), f.fire)
}
