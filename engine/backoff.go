package engine

import (
	"math/rand/v2"
	"time"

	"leasehold/channel"
)

const (
	backoffBase = 2 * time.Second
	backoffCap  = time.Minute
	// backoffLong is the cap after longAfter failures in a row: a platform that is
	// down for hours is asked twelve times an hour, not sixty.
	backoffLong = 5 * time.Minute
	longAfter   = 10
	// StableAfter is how long a link must have been connected before its failures
	// are forgotten: a server that accepts and drops is a failing one.
	StableAfter = time.Minute
	// probeFirst and probeCap pace the retries of what a person must mend.
	probeFirst, probeCap = 5 * time.Minute, 6 * time.Hour
	// ghostTries at ghostMin to ghostMax: a restart races its own ghost.
	ghostTries         = 3
	ghostMin, ghostMax = 5 * time.Second, 15 * time.Second
	ghostSlow          = 5 * time.Minute
	// recycleMin is how long a link must have been connected for a requested
	// recycle to cost nothing; below it the recycle counts as a failure, or a
	// server that recycles at once would be dialled every second for ever.
	recycleMin = 10 * time.Second
)

// transientDelay is the wait after fails failures in a row: jitter inside the
// cap, never above it.
func transientDelay(r *rand.Rand, fails int) time.Duration {
	limit := backoffCap
	if fails > longAfter {
		limit = backoffLong
	}
	high := limit
	if shift := fails; shift < 16 { // beyond it the shift alone passes any cap
		high = min(limit, backoffBase<<shift)
	}
	return between(r, backoffBase/2, high)
}

// delayFor is the wait after an exit; fails counts this one, rejections those
// in a row that a person must mend.
func delayFor(r *rand.Rand, exit channel.Exit, fails, rejections int) time.Duration {
	switch exit.Class {
	case channel.ClassRecycle:
		return between(r, 0, time.Second)
	case channel.ClassRateLimited:
		if exit.After > 0 {
			return exit.After + between(r, 0, max(exit.After/10, time.Second))
		}
	case channel.ClassRejected:
		d := probeCap
		if n := rejections - 1; n < 8 {
			d = min(probeCap, probeFirst<<max(0, n))
		}
		return d + between(r, 0, d/10)
	case channel.ClassSuperseded:
		if fails <= ghostTries {
			return between(r, ghostMin, ghostMax)
		}
		return ghostSlow + between(r, 0, ghostSlow/10)
	}
	return transientDelay(r, fails)
}

func between(r *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}
