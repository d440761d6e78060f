package engine

import (
	"errors"
	"fmt"
	"time"
)

// Instant is a point on a node's boot clock, in nanoseconds: it goes on while
// the machine sleeps, and never steps.
type Instant int64

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns how long i is after j.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Never is after every instant.
const Never = Instant(1<<63 - 1)

// Timing is how a node keeps its session, and when it stops trusting it.
type Timing struct {
	TTL            time.Duration // of the session, on the store's clock
	RenewEvery     time.Duration // ±10 %
	AttemptTimeout time.Duration // of one store call
	Margin         time.Duration // slack for clocks and scheduling, plus Goodbye to close every socket
}

// DefaultTiming is what a config without a [lease] table means.
func DefaultTiming() Timing {
	return Timing{TTL: 30 * time.Second, RenewEvery: 5 * time.Second, AttemptTimeout: 3 * time.Second, Margin: 3 * time.Second}
}

const (
	// clockRate is by how much two clocks may drift apart: 2 in 1,000, ten times
	// what NTP allows a kernel to slew.
	clockRate = 0.002
	// clockSlack is how far the store's clock may step against ours unnoticed. It
	// is part of the margin, as is what a starved process is late.
	clockSlack = time.Second
	// retryMin and retryMax bound the full-jitter gap between failed renewals.
	retryMin, retryMax = 200 * time.Millisecond, time.Second
	// renewAttempts must fit between a renewal and the fence, so that one lost
	// answer and one slow one are no reason to drop every connection.
	renewAttempts = 3
)

// Trust is for how long after sending a renewal its success may be trusted. The
// store granted TTL after that instant, so counting from it errs early.
func (t Timing) Trust() time.Duration {
	return time.Duration(float64(t.TTL)*(1-clockRate)) - t.Margin
}

// Validate refuses a timing under which a healthy node could lose its session,
// or a sick one keep it. The error names the numbers.
func (t Timing) Validate() error {
	var errs []error
	for _, v := range []struct {
		name string
		d    time.Duration
	}{{"ttl", t.TTL}, {"renew_every", t.RenewEvery}, {"attempt_timeout", t.AttemptTimeout}, {"margin", t.Margin}} {
		if v.d <= 0 {
			errs = append(errs, fmt.Errorf("lease.%s: must be positive (got %v)", v.name, v.d))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	trust := t.Trust()
	if need := t.RenewEvery + renewAttempts*t.AttemptTimeout + (renewAttempts-1)*retryMax; need > trust {
		errs = append(errs, fmt.Errorf("lease: renew_every %v + %d attempts of %v + %d gaps of %v = %v must fit in ttl %v less drift and margin %v = %v; raise lease.ttl",
			t.RenewEvery, renewAttempts, t.AttemptTimeout, renewAttempts-1, retryMax, need, t.TTL, t.Margin, trust))
	}
	if room := (trust - t.RenewEvery) / 2; t.AttemptTimeout >= room {
		errs = append(errs, fmt.Errorf("lease.attempt_timeout: %v must be less than %v, so that one hung attempt leaves room for another", t.AttemptTimeout, room))
	}
	return errors.Join(errs...)
}
