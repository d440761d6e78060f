//go:build !linux

package engine

import (
	"sync"
	"time"
)

// systemClock adds up, between one reading and the next, the larger of what the
// monotonic clock passed (it stops during suspend) and what the wall clock did
// (it steps): a step back changes nothing, a step forward brings the fence
// early, which costs a reconnect and no promise.
type systemClock struct{}

var sinceStart struct {
	mu   sync.Mutex // guards what follows
	last time.Time
	boot Instant
}

func (systemClock) Boot() Instant {
	sinceStart.mu.Lock()
	defer sinceStart.mu.Unlock()
	now := time.Now()
	if !sinceStart.last.IsZero() {
		mono, wall := now.Sub(sinceStart.last), now.Round(0).Sub(sinceStart.last.Round(0))
		sinceStart.boot = sinceStart.boot.Add(max(mono, wall))
	}
	sinceStart.last = now
	return sinceStart.boot
}

func (systemClock) Wall() time.Time { return time.Now() }
