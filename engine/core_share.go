package engine

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// handing is what this node has to give to others, because it holds more than its
// share. It gives up no more in a second than they may dial: an installation that
// waits in its next owner's dial limiter has no connection meanwhile.
type handing struct {
	over   int     // leases above our share, as of the last list
	rate   float64 // given up per second
	tokens float64 // that may be given up now
	at     Instant // tokens were counted at
	next   Instant // when to go on; Never
	window int     // how many that were shed may wait for a taker at a time
	pause  Instant // no shedding before
}

const (
	// handEvery is the beat in which leases are given up: each release makes every
	// node look.
	handEvery = 100 * time.Millisecond
	// shedAfter is how long a lease is held at least before it is shed.
	shedAfter = time.Minute
	// windowMin and windowMax bound what nobody may turn out to want: twice as much is
	// shed at a time once all of the last was taken.
	windowMin, windowMax = 2, 100
	// unwantedPause is how long nothing is shed after something found no taker, who
	// may be deaf to its platform.
	unwantedPause = 10 * time.Minute
)

// holdings is one live node on the scales.
type holdings struct {
	session string
	share   float64 // of the leases, by weight
	have    int
}

func (n *holdings) above() float64 { return float64(n.have) - n.share }

// uneven reports whether a node is further from its share than is worth a move.
func (n *holdings) uneven() bool { return math.Abs(n.above()) > max(1, n.share/10) }

// scales weighs what every node holds that is not about to leave. What is free, or
// about to be, counts for those who will take it: whoever is furthest below.
func (c *Core) scales() []*holdings {
	var nodes []*holdings
	known := map[string]*holdings{}
	sum := 0
	weigh := func(session string, weight int) {
		n := &holdings{session: session, share: float64(max(1, weight))}
		nodes, known[session] = append(nodes, n), n
		sum += max(1, weight)
	}
	for _, p := range c.list.peers {
		if !p.Draining && p.Session != c.session.id {
			weigh(p.Session, p.Weight)
		}
	}
	if !c.leaving() {
		weigh(c.session.id, c.o.weight)
	}
	slices.SortFunc(nodes, func(a, b *holdings) int { return cmp.Compare(a.session, b.session) })
	total, free := 0, 0
	c.each(func(u *unit) {
		if !c.runnable(u) {
			return
		}
		total++
		owner := u.lease.Owner
		if u.held || owner == c.session.id {
			owner = ""
			if u.held && !u.lost && !u.giveUp {
				owner = c.session.id
			}
		}
		if n := known[owner]; n != nil && (u.held || u.lease.Alive) {
			n.have++
			return
		}
		free++
	})
	for _, n := range nodes {
		n.share *= float64(total) / float64(sum)
	}
	for range free {
		if n := lowest(nodes); n != nil {
			n.have++
		}
	}
	return nodes
}

func lowest(nodes []*holdings) *holdings {
	if len(nodes) == 0 {
		return nil
	}
	return slices.MinFunc(nodes, func(a, b *holdings) int { return cmp.Compare(a.above(), b.above()) })
}

func highest(nodes []*holdings) *holdings {
	return slices.MaxFunc(nodes, func(a, b *holdings) int { return cmp.Compare(a.above(), b.above()) })
}

// weigh finds out how much of what we hold should be another's. Every node comes to
// the same conclusion about the same list.
func (c *Core) weigh() {
	h := &c.hand
	h.over, h.rate = 0, 0
	nodes := c.scales()
	if c.leaving() || c.sick != nil || c.now < h.pause {
		return
	}
	if !slices.ContainsFunc(nodes, (*holdings).uneven) {
		h.window = windowMin
		return
	}
	untaken := c.untaken()
	if untaken == 0 {
		h.window = min(windowMax, 2*h.window)
	}
	if untaken >= h.window {
		return
	}
	moves, takers := 0, map[string]bool{}
	for {
		from, to := highest(nodes), lowest(nodes)
		if from.above()-to.above() <= 1+1e-9 {
			break
		}
		from.have, to.have, moves, takers[to.session] = from.have-1, to.have+1, moves+1, true
		if from.session == c.session.id {
			h.over++
		}
	}
	if h.over > 0 {
		h.rate = c.o.rate * float64(len(takers)) * float64(h.over) / float64(moves)
		h.over = min(h.over, h.window-untaken)
	}
}

// untaken counts what was shed and has no other owner yet.
func (c *Core) untaken() int {
	n := 0
	c.each(func(u *unit) {
		if u.shed && c.runnable(u) {
			n++
		}
	})
	return n
}

// handOver gives up the next few.
func (c *Core) handOver() {
	h := &c.hand
	h.next = Never
	if h.over <= 0 || c.leaving() {
		return
	}
	h.tokens = min(max(1, burst*h.rate/c.o.rate), h.tokens+h.rate*c.now.Sub(h.at).Seconds())
	h.at = c.now
	var able []*unit
	c.each(func(u *unit) {
		if u.held && !u.giveUp && !u.lost && u.row.Enabled && c.now.Sub(u.heldAt) >= shedAfter {
			able = append(able, u)
		}
	})
	slices.SortFunc(able, c.lessMine)
	n := min(len(able), h.over, int(h.tokens))
	h.over -= n
	h.tokens -= float64(n)
	for _, u := range able[:n] {
		u.giveUp, u.shed, u.avoid, u.patience = true, true, c.now.Add(shedAfter), overdue*c.o.timing.RenewEvery
		c.settle(u)
	}
	if n < len(able) && h.over > 0 {
		h.next = c.now.Add(handEvery)
	}
}

// connected reports whether to give the unit up cuts a link.
func (u *unit) connected() bool { return u.term != nil && u.term.phase == live }

// lessMine orders what may be shed: what is not connected first, then by the score.
func (c *Core) lessMine(a, b *unit) int {
	if a.connected() != b.connected() {
		if b.connected() {
			return -1
		}
		return 1
	}
	return cmp.Compare(score(a.id, c.o.instance), score(b.id, c.o.instance))
}

// share is how many of n leases this node may claim.
func (c *Core) share(n int) int {
	sum, mine := 0, c.o.weight
	for _, p := range c.list.peers {
		if !p.Draining && p.Session != c.session.id {
			sum += max(1, p.Weight)
		}
	}
	return int(math.Ceil(float64(n) * float64(mine) / float64(sum+mine)))
}

func (c *Core) othersLive() bool {
	return slices.ContainsFunc(c.list.peers, func(p Peer) bool { return p.Session != c.session.id && !p.Draining })
}
