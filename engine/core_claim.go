package engine

import (
	"hash/fnv"
	"math"
	"slices"
	"time"

	"leasehold/internal/fault"
)

// claiming is what the Core is about to take, and to give up.
type claiming struct {
	outstanding bool
	ticks       int      // lists seen
	want        []string // still to be claimed, best first
	releases    []Held   // collected during a Step, sent in one batch
}

const (
	// claimMax bounds one claim, so that nodes that start together share.
	claimMax = 32
	// shedMax leases are given up per tick at most, each held for shedAfter at least.
	shedMax   = 5
	shedAfter = time.Minute
	shedAvoid = time.Minute
	// overdue lists in a row that show a lease free are nobody's budget but ours.
	overdue = 2
	// forsaken is after how many such lists even what we avoid is taken.
	forsaken = 24
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
	type candidate struct {
		u     *unit
		score uint64
	}
	var free []candidate
	mine, total := 0, 0
	c.each(func(u *unit) {
		if u.held {
			mine++
		}
		if !c.runnable(u) || u.lease.ID == "" {
			u.freeTicks = 0
			return
		}
		total++
		if u.held || u.busy > 0 || u.lease.Alive {
			u.freeTicks = 0
			return
		}
		u.freeTicks++
		if c.now < u.avoid && c.othersLive() && u.freeTicks < forsaken {
			return
		}
		free = append(free, candidate{u, score(u.id, c.o.instance)})
	})
	slices.SortFunc(free, func(a, b candidate) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		default:
			return 0
		}
	})
	budget := c.share(total) - mine
	for _, f := range free {
		if budget > 0 || f.u.freeTicks > overdue {
			budget--
			c.claims.want = append(c.claims.want, f.u.id)
		}
	}
}

// share is how many of n leases this node should hold.
func (c *Core) share(n int) int {
	sum, mine := 0, c.o.weight
	for _, p := range c.list.peers {
		if p.Draining || p.Session == c.session.id {
			continue
		}
		sum += max(1, p.Weight)
	}
	return ceilShare(n, mine, sum+mine)
}

func ceilShare(n, weight, sum int) int {
	return int(math.Ceil(float64(n) * float64(weight) / float64(sum)))
}

func (c *Core) othersLive() bool {
	for _, p := range c.list.peers {
		if p.Session != c.session.id && !p.Draining {
			return true
		}
	}
	return false
}

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

// shed gives up a few leases when we hold more than our share and somebody
// holds less than his: those that wait first, then by the lowest score.
func (c *Core) shed() {
	if c.leaving() || c.sick != nil || !c.othersLive() {
		return
	}
	mine, total := 0, 0
	var able []*unit
	c.each(func(u *unit) {
		if c.runnable(u) {
			total++
		}
		if u.held && !u.giveUp {
			mine++
			if c.now.Sub(u.heldAt) >= shedAfter && !u.lost && u.row.Enabled {
				able = append(able, u)
			}
		}
	})
	target := c.share(total)
	if mine <= target+max(1, target/10) || !c.somebodyBelow(total) {
		return
	}
	waits := func(u *unit) bool { return u.term == nil || u.term.phase != live }
	slices.SortFunc(able, func(a, b *unit) int {
		if waits(a) != waits(b) {
			if waits(a) {
				return -1
			}
			return 1
		}
		if score(a.id, c.o.instance) < score(b.id, c.o.instance) {
			return -1
		}
		return 1
	})
	for _, u := range able[:min(len(able), shedMax, mine-target)] {
		u.giveUp, u.avoid = true, c.now.Add(shedAvoid)
		c.settle(u)
	}
}

func (c *Core) somebodyBelow(total int) bool {
	sum := c.o.weight
	for _, p := range c.list.peers {
		if p.Session != c.session.id && !p.Draining {
			sum += max(1, p.Weight)
		}
	}
	for _, p := range c.list.peers {
		if p.Session != c.session.id && !p.Draining && c.list.owners[p.Session] < ceilShare(total, max(1, p.Weight), sum)-1 {
			return true
		}
	}
	return false
}
