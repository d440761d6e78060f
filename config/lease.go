package config

import (
	"fmt"
	"time"
)

// The numbers of the inequality that are not keys.
const (
	// ClockError is how much faster one clock may run than another: 0.2 %, ten
	// times what crystals of cheap boards are off by.
	ClockError = 0.002
	// RetryGap is the longest pause between two attempts to renew.
	RetryGap = time.Second
	// Attempts is how many attempts to renew must fit before trust ends.
	Attempts = 3
)

// Trust is how long after sending a renewal a node may act on it: TTL less the
// clocks' error and the margin.
func (l Lease) Trust() time.Duration {
	return time.Duration(float64(l.TTL)*(1-ClockError)) - l.Margin.Std()
}

// Need is the longest time from one renewal sent to the next one answered, when
// all attempts but the last fail: RenewEvery + 3 attempts + the 2 gaps between.
func (l Lease) Need() time.Duration {
	return l.RenewEvery.Std() + Attempts*l.AttemptTimeout.Std() + (Attempts-1)*RetryGap
}

// unsafe says why a node with these numbers could lose its lease to one slow
// answer, or keep it for too long; "" when it could not.
func (l Lease) unsafe() (message, hint string) {
	trust := l.Trust()
	if l.TTL > maxTTL || l.AttemptTimeout > maxTTL || l.RenewEvery > maxTTL {
		return fmt.Sprintf("ttl, renew_every and attempt_timeout must be at most %s", maxTTL), ""
	}
	if half := (trust - l.RenewEvery.Std()) / 2; half > 0 && l.AttemptTimeout.Std() >= half {
		return fmt.Sprintf(
			"unsafe: attempt_timeout %s leaves no room for another attempt after one that hangs; it must be less than %s, half of what renew_every %s leaves of %s of trust (ttl %s less 0.2 %% clock error less margin %s)",
			l.AttemptTimeout, half, l.RenewEvery, trust, l.TTL, l.Margin,
		), "lower attempt_timeout or raise ttl"
	}
	if need := l.Need(); need > trust {
		return fmt.Sprintf(
			"unsafe: a renewal is trusted for %s (ttl %s less 0.2 %% clock error less margin %s), but renew_every %s + %d × attempt_timeout %s + %d × %s between them take %s",
			trust, l.TTL, l.Margin, l.RenewEvery, Attempts, l.AttemptTimeout, Attempts-1, RetryGap, need,
		), fmt.Sprintf("raise ttl to at least %s, or lower the others", l.least(need+l.Margin.Std()))
	}
	return "", ""
}

// maxTTL bounds the numbers so that sums of them do not overflow; a node that is
// deaf for a day is not what a lease is for.
const maxTTL = Duration(24 * time.Hour)

// least is the shortest ttl, in whole seconds, that leaves d after clock error.
func (Lease) least(d time.Duration) Duration {
	ttl := time.Duration(float64(d) / (1 - ClockError))
	return Duration((ttl + time.Second - 1).Truncate(time.Second))
}
