package engine

import "time"

// parting is how a node that leaves hands over: no faster than others may dial, so
// that each connection is without an owner for as long as one takes to be made, and
// none waits in their dial limiters behind hundreds.
type parting struct {
	on      bool
	at      Instant // of the next few
	counted Instant // tokens were counted at
	types   map[string]*partingType
}

// partingType is a bucket, as the dial limiters have one per type.
type partingType struct{ rate, tokens float64 }

const (
	// partEvery makes a batch of what leaves: each costs every node a look at the
	// store, and at the usual rate it is no more than others may dial at once.
	partEvery = 200 * time.Millisecond
	// partRate is which part of the dial rate is handed over: one node may have to take
	// everything, and others of its links dial, too.
	partRate = 0.9
)

// leaving reports whether the node is to hold nothing.
func (c *Core) leaving() bool { return c.draining || c.drained }

// leaves reports whether a unit's turn has come: at once for what has no connection.
func (c *Core) leaves(u *unit) bool {
	return c.leaving() && (!c.parting.on || u.parted || u.term == nil || u.term.phase != live)
}

// leave begins to hand over, before the node is marked as leaving. With nobody to
// hand over to, or no store to do it through, everything ends at once.
func (c *Core) leave() {
	if c.leaving() {
		return
	}
	c.parting = parting{}
	if c.o.handOver <= 0 || c.o.sole || c.sick != nil || !c.session.open || !c.othersLive() {
		return
	}
	c.parting = parting{on: true, at: c.now, counted: c.now, types: map[string]*partingType{}}
	c.each(func(u *unit) {
		if u.parted = c.offline(u); u.parted || u.term == nil || u.term.phase != live {
			return
		}
		t := c.parting.types[u.row.Type]
		if t == nil {
			t = &partingType{tokens: burst}
			c.parting.types[u.row.Type] = t
		}
		t.rate++
	})
	for _, t := range c.parting.types {
		t.rate = max(partRate*c.o.rate, t.rate/c.o.handOver.Seconds())
	}
}

// part ends the terms whose turn has come.
func (c *Core) part() {
	p := &c.parting
	if !p.on || c.now < p.at {
		return
	}
	passed := c.now.Sub(p.counted).Seconds()
	p.at, p.counted = c.now.Add(partEvery), c.now
	for _, t := range p.types {
		t.tokens = min(t.tokens+t.rate*passed, max(burst, t.rate*partEvery.Seconds()))
	}
	left := false
	c.each(func(u *unit) {
		if u.parted || u.term == nil || u.term.phase != live {
			return
		}
		if t := p.types[u.row.Type]; t != nil { // nil: its type was changed meanwhile
			if t.tokens < 1 {
				left = true
				return
			}
			t.tokens--
		}
		u.parted = true
		c.settle(u)
	})
	p.on = left
	if !left {
		c.settleAll()
	}
}

// drain gives everything up politely; then the program ends with err.
func (c *Core) drain(err error) {
	if c.exitErr == nil {
		c.exitErr = err
	}
	if c.draining {
		return
	}
	c.leave()
	c.draining = true
	if c.session.open && !c.o.sole {
		c.emit(actDrainSession{c.session.id})
	}
	c.settleAll()
}

// hurry closes what a drain still waits for.
func (c *Core) hurry() {
	c.drain(nil)
	c.hurried, c.parting.on = true, false
	c.each(func(u *unit) {
		if u.term != nil {
			c.kill(u)
		}
	})
}

// finishDrain releases in one batch what has been dropped, ends the session
// last, and exits.
func (c *Core) finishDrain() {
	if !c.draining || c.exited || c.session.ending {
		return
	}
	waiting := false
	c.each(func(u *unit) { waiting = waiting || u.held || u.term != nil })
	if waiting {
		return
	}
	if !c.session.open {
		c.exitWith(c.exitErr)
		return
	}
	c.session.ending = true
	c.emit(actEndSession{c.session.id})
}

func (c *Core) ended() {
	if c.session.ending {
		c.session.open = false
		c.exitWith(c.exitErr)
	}
}
