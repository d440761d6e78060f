package engine

import (
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

func (c *Core) settleHold(u *unit) {
	if !u.held {
		return
	}
	if u.cleared && !u.lost && !u.drop && u.busy == 0 && c.sick == nil {
		u.cleared = false
		if u.stored {
			c.saveBackoff(u, u.row.Fingerprint, 0)
		}
	}
	giveUp := u.lost || c.leaves(u) || u.giveUp || !c.runnable(u)
	if giveUp && !u.drop && (u.lost || u.term == nil) {
		u.drop, u.queued = true, false
		c.emit(actDrop{u.token()})
	}
	if !u.drop || !u.dropped || u.term != nil || u.busy > 0 {
		return
	}
	if u.lost || !c.session.open {
		c.ungrant(u)
		return
	}
	if c.now >= u.retry && (c.sick == nil || c.draining) {
		c.release(Held{u.id, u.epoch})
	}
}

// granted takes what a claim returned.
func (c *Core) granted(g Grant) {
	u := c.units[g.ID]
	if u == nil {
		u = c.addUnit(g.ID)
	}
	c.holding++
	if u.shed { // nobody wanted it
		c.hand.window, c.hand.pause = windowMin, c.now.Add(unwantedPause)
	}
	u.shed = false
	u.held, u.owner, u.epoch, u.heldAt = true, c.session.id, g.Epoch, c.now
	u.lost, u.giveUp, u.drop, u.dropped, u.localFails = false, false, false, false, 0
	u.fails, u.notBefore, u.retry = g.Fails, 0, 0
	u.stored, u.cleared = g.Fails > 0 || g.Wait > 0, false
	if g.Wait > 0 {
		u.notBefore = c.now.Add(g.Wait)
		if u.reason == "" {
			u.reason = "backoff"
		}
	}
	c.emit(actHold{u.token()})
	c.settle(u)
}

func (c *Core) ungrant(u *unit) {
	c.holding--
	u.held, u.lost, u.giveUp, u.drop, u.dropped, u.queued = false, false, false, false, false, false
	u.lease.Owner, u.lease.Alive = unsure, true
	u.touched = c.list.seq
	// The next list says who has it, and in full.
	c.list.dirty = true
	c.list.at = min(c.list.at, c.now.Add(againSoon))
}

// lose ends a grant that is, or may be, another's: at once, and without a write.
func (c *Core) lose(u *unit, why string) {
	if u.lost {
		return
	}
	u.lost, u.queued = true, false
	u.reason, u.detail = "lease_lost", why
	if u.term != nil {
		u.term.cause = channel.ErrFenced
		c.kill(u)
	}
}

// saveBackoff stores fails and the wait with the lease, where the next owner
// finds them. The lease is not released before the answer.
func (c *Core) saveBackoff(u *unit, fingerprint string, wait time.Duration) {
	u.busy++
	u.stored = u.fails > 0 || wait > 0
	c.emit(actBackoff{u.token(), Setback{fingerprint, u.fails, wait}})
}

func (c *Core) saved(in inSaved) {
	u := c.units[in.id]
	if u == nil {
		return
	}
	u.busy--
	u.touched = c.list.seq
	switch {
	case errors.Is(in.err, ErrFenced) && u.held && u.epoch == in.epoch:
		c.lose(u, "another node has it")
	case in.err != nil:
		u.stored = true // perhaps
		if fault.Store(in.err) {
			c.storeSaid(in.err)
		}
	}
	c.settle(u)
}
