package engine

import (
	"container/heap"
	"time"

	"leasehold/channel"
)

// unit is one installation in the Core: what is wanted of it, the grant if we
// hold one, and the term if one runs.
type unit struct {
	id     string
	row    Installation
	listed bool
	absent int   // lists in a row that lacked it
	lease  Lease // as last listed

	held    bool
	owner   string // the session it was granted to
	epoch   int64
	heldAt  Instant
	lost    bool // the grant is another's: end at once, write nothing
	giveUp  bool // shed, or deaf: release it though it is wanted
	parted  bool // its turn to be handed over has come
	dropped bool // the holder has stopped writing
	drop    bool // the holder was told to
	busy    int  // lease operations on their way
	touched uint64
	retry   Instant // of a failed release

	fails      int     // in a row, as stored with the lease
	rejections int     // in a row, in this process
	localFails int     // never connected under this grant
	notBefore  Instant // gates dialling, not holding
	stored     bool    // the lease row has a backoff
	cleared    bool    // it is to be taken back
	blocked    bool
	reason     string
	detail     string
	wedges     int

	avoid    Instant       // do not claim before,
	patience time.Duration // unless it has been free for so long
	freeAt   Instant       // first seen free; Never = is not
	shed     bool          // given up for the sake of the share, and not taken yet

	queued bool
	term   *termState
	due    Instant
	shown  actStatus
}

func (u *unit) setRow(row Installation) {
	if u.listed && u.row.Fingerprint != row.Fingerprint {
		u.clearBackoff()
	}
	u.row, u.listed, u.absent = row, true, 0
}

func (u *unit) clearBackoff() {
	u.fails, u.rejections, u.localFails, u.wedges = 0, 0, 0, 0
	u.notBefore, u.blocked, u.reason, u.detail = 0, false, "", ""
	u.cleared = true
}

// idle reports whether nothing of the unit is ours.
func (u *unit) idle() bool { return !u.held && u.term == nil && u.busy == 0 }

func (u *unit) token() channel.Term {
	return channel.Term{Installation: u.id, Owner: u.owner, Epoch: u.epoch}
}

// runnable reports whether somebody should hold its lease.
func (c *Core) runnable(u *unit) bool {
	return c.o.known(u.row.Type) && (u.row.Enabled && !u.row.Removed || u.row.Backlog)
}

// wantTerm reports whether a term should run, now or when its wait is over.
func (c *Core) wantTerm(u *unit) bool {
	return u.term == nil && u.held && c.endCause(u) == nil
}

// endCause is why a unit's term must end; nil = it may run.
func (c *Core) endCause(u *unit) error {
	switch {
	case u.lost || !c.session.open:
		return channel.ErrFenced
	case c.leaves(u) || u.giveUp:
		return channel.ErrDraining
	case !u.row.Enabled || u.row.Removed || u.drop:
		return channel.ErrRemoved
	case c.sick != nil:
		return channel.ErrParked
	case u.term != nil && (u.term.fp != u.row.Fingerprint || u.term.kind != u.row.Type):
		return channel.ErrReplaced
	}
	return nil
}

// settle moves a unit one step towards what it should be. It is safe to call at
// any time.
func (c *Core) settle(u *unit) {
	if u.term != nil {
		c.settleTerm(u)
	} else if c.wantTerm(u) && !u.queued && c.now >= u.notBefore {
		c.enqueue(u)
	}
	c.settleHold(u)
	c.schedule(u)
	c.report(u)
}

// schedule notes when the unit must be settled again.
func (c *Core) schedule(u *unit) {
	due := Never
	switch {
	case u.term != nil:
		due = u.term.deadline
	case u.held && u.drop:
		if u.dropped && u.busy == 0 && (c.sick == nil || c.draining) {
			due = u.retry
		}
	case c.wantTerm(u) && !u.queued:
		due = u.notBefore
	}
	if due <= c.now { // it was settled with this very now
		due = c.now.Add(time.Millisecond)
	}
	if due != u.due {
		u.due = due
		if due != Never {
			heap.Push(&c.due, dueUnit{due, u.id})
		}
	}
}
