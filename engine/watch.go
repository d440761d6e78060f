package engine

import (
	"context"
	"time"
)

const (
	// watchEvery is the pause watch: with 5 s a paused node said 20 things after
	// it woke before anybody noticed, with 250 ms and the gate none.
	watchEvery = 250 * time.Millisecond
	// sleptFor: the boot clock passed this much more than Go's monotonic clock.
	sleptFor = time.Second
	// stoodFor: a timer of watchEvery fired this late.
	stoodFor = 2 * time.Second
)

// watchClock compares clocks: a suspended machine's sockets are dead, a paused
// process must renew before it does anything else.
func (s *Supervisor) watchClock(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	boot, mono := s.o.Clock.Boot(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		b, m := s.o.Clock.Boot(), time.Now()
		bootPassed, monoPassed := b.Sub(boot), m.Sub(mono)
		boot, mono = b, m
		switch {
		case bootPassed-monoPassed > sleptFor:
			s.killAll()
			s.log.WarnContext(ctx, "the machine slept", "for", bootPassed)
			s.mail.put(inAnomaly{suspended})
		case bootPassed > watchEvery+stoodFor:
			s.log.WarnContext(ctx, "the process stood still", "for", bootPassed)
			if !s.trust.valid(b) {
				s.killAll()
			}
			s.mail.put(inAnomaly{paused})
		}
	}
}

// A store may know of changes by itself, and may know that its files were
// replaced under it.
type (
	changeSource interface {
		Watch(ctx context.Context) <-chan struct{}
	}
	selfChecker interface{ CheckFiles() error }
)

// watchStore passes on what the store notices by itself.
func (s *Supervisor) watchStore(ctx context.Context) {
	var changes <-chan struct{}
	if c, ok := s.store.(changeSource); ok {
		changes = c.Watch(ctx)
	}
	check := func() {}
	if c, ok := s.store.(selfChecker); ok {
		check = func() {
			if err := c.CheckFiles(); err != nil {
				s.mail.put(inLockLost{err})
			}
		}
	}
	ticker := time.NewTicker(s.o.Timing.RenewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			s.mail.put(inWake{})
		case <-ticker.C:
			check()
		}
	}
}
