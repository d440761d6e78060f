package engine

import (
	"errors"
	"fmt"
	"time"

	"leasehold/internal/fault"
)

// session is what the Core knows of its own session row.
type session struct {
	gen      int    // counts openings; answers of an earlier one are ignored
	id       string // of this generation
	previous string
	open     bool
	asking   bool    // an open or a renewal is on its way
	ending   bool    // EndSession was sent
	at       Instant // of the next open or renewal
	fence    Instant // trust ends here
	reapAt   Instant // not before this

	storeTime time.Time // the store's clock as last answered, at answeredAt
	answered  Instant
}

func (s *session) next() Instant {
	if s.asking || s.ending {
		if s.open {
			return s.fence
		}
		return Never
	}
	if s.open {
		return min(s.at, s.fence)
	}
	return s.at
}

func (c *Core) socketsOpen() bool {
	for _, id := range c.ids {
		if t := c.units[id].term; t != nil && !t.closed {
			return true
		}
	}
	return false
}

// renewNow asks without waiting for the next turn. A sole owner has nothing to
// renew, and opens when it must.
func (c *Core) renewNow() {
	if !c.session.open || !c.o.sole {
		c.session.at = min(c.session.at, c.now)
	}
}

// sessionDue opens or renews when it is time.
func (c *Core) sessionDue() {
	s := &c.session
	if s.asking || s.ending || c.now < s.at || c.sick != nil && !s.open {
		return
	}
	switch {
	case s.open && !c.o.sole:
		s.asking = true
		c.emit(actRenew{s.gen, s.id})
	case !s.open && !c.draining:
		if c.socketsOpen() {
			// A new session ends the old one, which frees its leases: not before the
			// last socket under them is gone.
			s.at = c.now.Add(10 * time.Millisecond)
			return
		}
		if s.id == "" {
			s.gen++
			s.id = fmt.Sprintf("%016x%016x", c.o.rand.Uint64(), c.o.rand.Uint64())
		}
		s.asking = true
		c.emit(actOpen{s.gen, s.id, s.previous})
	}
}

func (c *Core) sessionAnswered(in inSession) {
	s := &c.session
	if in.gen != s.gen || !s.asking {
		return
	}
	s.asking = false
	if in.err != nil {
		c.sessionFailed(in)
		return
	}
	if in.renew && !s.open {
		return
	}
	fence := Never
	if !c.o.sole {
		fence = in.sentAt.Add(c.o.timing.Trust())
		if c.now >= fence { // the answer came too late to be worth anything
			c.loseSession("a renewal took too long")
			return
		}
	}
	s.fence = fence
	c.emit(actTrust{fence})
	c.compareClocks(in)
	s.at = Never
	if !c.o.sole {
		s.at = in.sentAt.Add(c.o.timing.RenewEvery - c.o.timing.RenewEvery/10 + between(c.o.rand, 0, c.o.timing.RenewEvery/5))
	}
	if !s.open {
		s.open, s.previous = true, s.id
		s.reapAt = c.now.Add(c.o.timing.TTL) // a step from before we looked at the store's clock is made good by then
		c.list.at, c.list.dirty = c.now, true
		c.settleAll()
		return
	}
	if c.now >= s.reapAt {
		c.emit(actReap{now: in.now, at: in.sentAt})
	}
}

// compareClocks holds off the reaper for one TTL when the store's clock passed
// more, or less, between two answers than ours can have. It stepped, or its host
// stood still, and what looks expired may be alive: a session that was renewed
// while the clock was behind has expired as soon as that is put right. It errs
// towards waiting.
func (c *Core) compareClocks(in inSession) {
	s := &c.session
	if in.now.IsZero() {
		return
	}
	if !s.storeTime.IsZero() {
		passed, least := in.now.Sub(s.storeTime), in.sentAt.Sub(s.answered)
		if passed > least+clockSlack || passed < least-clockSlack {
			s.reapAt = c.now.Add(c.o.timing.TTL)
		}
	}
	s.storeTime, s.answered = in.now, c.now
}

func (c *Core) sessionFailed(in inSession) {
	s := &c.session
	switch {
	case errors.Is(in.err, ErrIdentityTaken) && in.renew:
		c.loseSession("another process uses this identity")
		c.exitWith(identityTaken(in.err))
	case errors.Is(in.err, ErrIdentityTaken):
		c.exitWith(identityTaken(in.err))
	case errors.Is(in.err, ErrSessionGone):
		c.loseSession("the session is gone")
	default: // unknown outcome: the same again, until the fence
		if fault.Store(in.err) {
			c.storeSaid(in.err)
		}
		s.at = c.now.Add(between(c.o.rand, retryMin, retryMax))
	}
}

func identityTaken(err error) error {
	return fault.Errorf(fault.Invalid, "%w; give each node a data folder of its own, or wait until the other process has ended", err)
}

// loseSession ends everything at once: sockets first, then a new session under
// a new id. What was held is taken again under a new epoch.
func (c *Core) loseSession(why string) {
	s := &c.session
	if !s.open {
		return // an id whose opening has no answer yet stays ours
	}
	c.emit(actTrust{0})
	c.each(func(u *unit) {
		if u.term != nil {
			c.kill(u)
		}
	})
	c.each(func(u *unit) {
		if u.held {
			c.lose(u, why)
		}
	})
	s.open, s.asking, s.id = false, false, ""
	s.fence, s.at = Never, c.now
	c.claims.outstanding = false
	c.settleAll()
}
