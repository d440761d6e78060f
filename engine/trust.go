package engine

import (
	"sync/atomic"

	"leasehold/channel"
)

// trust is the instant until which this node may act for what it holds. The
// Supervisor moves it with every renewal; every read, write and accept of every
// term compares it with the boot clock, so that after a pause nothing is said
// before anything is decided.
type trust struct{ fence atomic.Int64 }

// set moves the fence. Zero means that nothing is trusted.
func (t *trust) set(fence Instant) { t.fence.Store(int64(fence)) }

// valid reports whether now is before the fence.
func (t *trust) valid(now Instant) bool { return int64(now) < t.fence.Load() }

// gate is what every act of one term passes: it is open while the node is
// trusted and the term has not been killed.
type gate struct {
	trust *trust
	boot  func() Instant
	shut  atomic.Bool
}

// pass returns nil, or why the term may not act any more.
func (g *gate) pass() error {
	if g.shut.Load() {
		return channel.ErrKilled
	}
	if !g.trust.valid(g.boot()) {
		return channel.ErrFenced
	}
	return nil
}

// close shuts the gate for good.
func (g *gate) close() { g.shut.Store(true) }
