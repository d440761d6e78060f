package engine

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"leasehold/internal/fault"
)

// claiming is what the Core is about to take, and to give up.
type claiming struct {
	outstanding bool
	want        []string // still to be claimed, best first
	releases    []Held   // collected during a Step, sent in one batch
}

const (
	// claimMax bounds one claim, so that nodes that start together share.
	claimMax = 32
	// overdue is for how many renewals a lease may be free before it is taken beyond
	// the share: its next owner should have had it by then.
	overdue = 2
	// forsaken is for how long it may be before we take what we cannot reach.
	forsaken = 2 * time.Minute
)

// score orders leases by a rendezvous hash, so that a restarted node gets its
// own set back and nodes that start together reach for different ones.
func score(lease, instance string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(instance))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(lease))
	x := h.Sum64() // fnv's last bytes barely reach the high bits; mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// plan chooses what to claim from the last list: our share of what is free, in
// the order of the scores, and what has been free too long.
func (c *Core) plan() {
	c.claims.want = c.claims.want[:0]
	if c.leaving() || !c.session.open {
		return
	}
	var free []*unit
	mine, total := 0, 0
	c.each(func(u *unit) {
		if u.held {
			mine++
		}
		if !c.runnable(u) || u.lease.ID == "" {
			u.freeAt = Never
			return
		}
		total++
		if u.held || u.busy > 0 || u.lease.Alive {
			u.freeAt = Never
			return
		}
		u.freeAt = min(u.freeAt, c.now)
		if c.othersLive() && (c.now < u.avoid && c.freeFor(u) < u.patience || c.deaf(u.row.Type) && c.freeFor(u) < forsaken) {
			return
		}
		free = append(free, u)
	})
	slices.SortFunc(free, func(a, b *unit) int {
		return cmp.Compare(score(b.id, c.o.instance), score(a.id, c.o.instance))
	})
	budget := c.share(total) - mine
	for _, u := range free {
		if budget > 0 || c.freeFor(u) > overdue*c.o.timing.RenewEvery {
			budget--
			c.claims.want = append(c.claims.want, u.id)
		}
	}
}

// freeFor is for how long a lease that is free has been seen to be.
func (c *Core) freeFor(u *unit) time.Duration { return c.now.Sub(u.freeAt) }

// claim asks for the next few.
func (c *Core) claim() {
	c.sendReleases()
	if c.claims.outstanding || len(c.claims.want) == 0 || !c.mayConnect() || c.leaving() || c.sick != nil {
		return
	}
	n := min(claimMax, len(c.claims.want))
	ids := slices.Clone(c.claims.want[:n])
	c.claims.want = c.claims.want[n:]
	for _, id := range ids {
		if u := c.units[id]; u != nil {
			u.busy++
		}
	}
	c.claims.outstanding = true
	c.emit(actClaim{c.session.gen, c.session.id, ids})
}

func (c *Core) claimed(in inClaimed) {
	for _, id := range in.ids {
		if u := c.units[id]; u != nil {
			u.busy--
			u.touched = c.list.seq
		}
	}
	if in.gen != c.session.gen || !c.session.open {
		return // granted to a session of ours that is over
	}
	c.claims.outstanding = false
	if in.err != nil {
		c.claims.want = nil
		if fault.Store(in.err) {
			c.storeSaid(in.err)
		}
		c.list.dirty = true
		c.list.at = min(c.list.at, c.now.Add(time.Second))
		return
	}
	for _, g := range in.grants {
		c.granted(g)
	}
}

// release frees a lease; a batch is sent at the end of the Step.
func (c *Core) release(h Held) {
	if u := c.units[h.ID]; u != nil {
		u.busy++
	}
	c.claims.releases = append(c.claims.releases, h)
}

func (c *Core) sendReleases() {
	if len(c.claims.releases) == 0 {
		return
	}
	held := slices.Clone(c.claims.releases)
	c.claims.releases = c.claims.releases[:0]
	slices.SortFunc(held, func(a, b Held) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	c.emit(actRelease{c.session.gen, c.session.id, held})
}

func (c *Core) released(in inReleased) {
	for _, h := range in.held {
		u := c.units[h.ID]
		if u == nil {
			continue
		}
		u.busy--
		u.touched = c.list.seq
		switch {
		case in.err != nil:
			u.retry = c.now.Add(time.Second)
			if c.hurried || fault.Store(in.err) && c.draining {
				c.ungrant(u) // it stays named in the store until our session is gone
			}
		case u.held && u.epoch == h.Epoch:
			c.ungrant(u)
			u.lease = Lease{ID: u.id}
		}
		c.settle(u)
		if !u.listed && u.idle() {
			c.forget(u)
		}
	}
	if in.err == nil {
		c.list.at = min(c.list.at, c.now.Add(time.Second))
	}
}
