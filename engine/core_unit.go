package engine

import (
	"container/heap"
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
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

	avoid     Instant // do not claim before
	freeTicks int     // lists in a row that showed it free

	queued bool
	term   *termState
	due    Instant
	shown  actStatus
}

// termState is one term as the Core sees it.
type termState struct {
	n        uint64
	fp, kind string // fingerprint and channel type it was built with
	phase    phase
	cause    error         // why we ended it; nil = it ended itself, or runs
	exit     *channel.Exit // what Run returned
	closed   bool          // its sockets are gone
	slot     bool          // it counts as a dial in flight
	readyAt  Instant       // 0 = never
	downAt   Instant
	deadline Instant
}

type phase int

const (
	connecting phase = iota
	live             // ready
	goodbye          // asked to end
	killed           // sockets closed under it
	down             // Run returned; goroutines may still run
)

func (t *termState) ending() bool { return t.phase >= goodbye }

const (
	// connectMax bounds begin to ready. Every step of a handshake has a shorter
	// deadline of its own; this one catches what forgot it.
	connectMax = 90 * time.Second
	// killGrace is how long goroutines may take to notice that their sockets are gone.
	killGrace = time.Second
	// wedgeLimit blocks an installation whose channel did not return this often.
	wedgeLimit = 3
	// againSoon is when to look at the store again after a lease changed hands.
	againSoon = 200 * time.Millisecond
	// deafAfter failed connects under a grant it is given to others for deafAvoid.
	deafAfter = 3
	deafAvoid = 10 * time.Minute
)

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
	case c.draining || u.giveUp:
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

func (c *Core) settleTerm(u *unit) {
	t := u.term
	if t.phase < goodbye {
		if cause := c.endCause(u); cause != nil {
			c.end(u, cause)
			return
		}
	}
	if c.now < t.deadline {
		return
	}
	switch t.phase {
	case connecting:
		t.exit = &channel.Exit{Code: "connect_timeout", Err: errors.New("the platform did not say that we are connected within 90 s")}
		c.end(u, nil)
	case live: // connected for long enough
		t.deadline = Never
		u.rejections, u.localFails, u.wedges = 0, 0, 0
		u.fails, u.cleared = 0, true
	case goodbye:
		c.kill(u)
	case killed, down:
		if !t.closed { // never start a second one beside its sockets
			c.emit(actKill{u.id, t.n})
			t.deadline = c.now.Add(killGrace)
			return
		}
		c.abandon(u)
	}
}

func (c *Core) settleHold(u *unit) {
	if !u.held {
		return
	}
	if u.cleared && !u.lost && !u.drop && u.busy == 0 && c.sick == nil {
		u.cleared = false
		if u.stored {
			c.saveBackoff(u, 0)
		}
	}
	giveUp := u.lost || c.draining || u.giveUp || !c.runnable(u)
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

func (c *Core) begin(u *unit) {
	c.terms++
	u.queued = false
	u.term = &termState{n: c.terms, fp: u.row.Fingerprint, kind: u.row.Type, slot: true, deadline: c.now.Add(connectMax)}
	c.dials.inFlight++
	c.emit(actBegin{u.term.n, u.token(), u.row})
	c.schedule(u)
	c.report(u)
}

func (c *Core) ready(u *unit) {
	t := u.term
	if t.phase != connecting {
		return
	}
	t.phase, t.readyAt = live, c.now
	t.deadline = c.now.Add(stableAfter)
	c.freeSlot(t)
	u.blocked, u.reason, u.detail = false, "", ""
}

func (c *Core) freeSlot(t *termState) {
	if t.slot {
		t.slot = false
		c.dials.inFlight--
	}
}

// end asks a term to end; cause nil = because of its own fault, as t.exit says.
func (c *Core) end(u *unit, cause error) {
	t := u.term
	t.cause, t.phase, t.downAt = cause, goodbye, c.now
	t.deadline = c.now.Add(channel.Goodbye)
	c.freeSlot(t)
	say := cause
	if say == nil {
		say = t.exit.Err
	}
	c.emit(actEnd{u.id, t.n, say})
	if errors.Is(cause, channel.ErrFenced) {
		c.kill(u)
	}
}

func (c *Core) kill(u *unit) {
	t := u.term
	if t.phase < goodbye {
		t.downAt = c.now
	}
	if t.phase < killed {
		t.phase = killed
		t.deadline = c.now.Add(killGrace)
	}
	c.freeSlot(t)
	c.emit(actKill{u.id, t.n})
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

func (c *Core) down(u *unit, exit channel.Exit) {
	t := u.term
	if t.exit == nil {
		t.exit = &exit
	}
	if t.phase < goodbye {
		t.downAt = c.now
	}
	t.phase, t.closed = down, true
	t.deadline = c.now.Add(killGrace)
	c.freeSlot(t)
}

// panicked: something of the term's failed beside Run, which may not know.
func (c *Core) panicked(u *unit, exit channel.Exit) {
	if u.term.phase < goodbye {
		u.term.exit = &exit
		c.end(u, nil)
		c.kill(u)
	}
}

func (c *Core) returned(in inReturned) {
	u := c.units[in.id]
	if u == nil || u.term == nil || u.term.n != in.term {
		c.leaked = max(0, c.leaked-1) // one that was given up for lost came back
		return
	}
	c.finish(u)
	c.settle(u)
}

// abandon gives a term up whose goroutines do not return. Its sockets are
// closed, so it can neither hear nor speak.
func (c *Core) abandon(u *unit) {
	c.leaked++
	u.wedges++
	exit := channel.Exit{Code: "wedged", Err: errors.New("the channel did not return after its sockets were closed")}
	if u.term.exit == nil || u.term.cause == nil {
		u.term.exit = &exit
	}
	c.finish(u)
	if u.wedges >= wedgeLimit {
		u.blocked, u.notBefore = true, c.now.Add(probeCap)
		u.reason, u.detail = "wedged", exit.Err.Error()
	}
	if c.leaked > leakLimit {
		c.drain(fault.Errorf(fault.Temporary, "%d channels did not return after their sockets were closed; ending, so that the service manager starts a fresh process", c.leaked))
	}
	c.settle(u)
}

// finish ends a term for good, and decides when the next may begin.
func (c *Core) finish(u *unit) {
	t := u.term
	u.term = nil
	c.freeSlot(t)
	var up time.Duration
	if t.readyAt > 0 {
		up = t.downAt.Sub(t.readyAt)
	}
	switch {
	case errors.Is(t.cause, channel.ErrReplaced):
		u.clearBackoff()
	case errors.Is(t.cause, errSlept):
		u.notBefore = c.now.Add(between(c.o.rand, 0, 2*time.Second))
	case t.cause != nil || u.lost || c.sick != nil:
	case t.exit == nil:
		c.failed(u, channel.Exit{Code: "wedged", Err: errors.New("the channel did not return")}, up)
	case errors.Is(t.exit.Err, ErrFenced) || errors.Is(t.exit.Err, channel.ErrFenced):
		c.lose(u, "another node has it")
	case errors.Is(t.exit.Err, channel.ErrStore):
		u.notBefore = c.now.Add(between(c.o.rand, time.Second, 2*time.Second))
		u.reason, u.detail = "store", t.exit.Err.Error()
	default:
		c.failed(u, *t.exit, up)
	}
}

// failed counts a failure and stores when the next dial is allowed.
func (c *Core) failed(u *unit, exit channel.Exit, up time.Duration) {
	if up >= stableAfter {
		u.fails, u.rejections, u.localFails = 0, 0, 0
	}
	u.reason, u.detail = exit.Code, exit.Err.Error()
	u.blocked = exit.Class == channel.ClassRejected
	if exit.Class == channel.ClassRecycle {
		if up >= recycleMin {
			u.notBefore = c.now.Add(delayFor(c.o.rand, exit, u.fails, 0))
			return
		}
		exit.Class = channel.Transient
	}
	u.fails++
	if u.blocked {
		u.rejections++
	} else {
		u.rejections = 0
	}
	if up == 0 {
		u.localFails++
	}
	wait := delayFor(c.o.rand, exit, u.fails, u.rejections)
	u.cleared = false
	u.notBefore = c.now.Add(wait)
	c.saveBackoff(u, wait)
	if exit.Class == channel.Transient && u.localFails >= deafAfter && c.othersLive() {
		// Perhaps it is only we who cannot reach the platform.
		u.giveUp, u.avoid = true, c.now.Add(deafAvoid)
	}
}

// saveBackoff stores fails and the wait with the lease, where the next owner
// finds them. The lease is not released before the answer.
func (c *Core) saveBackoff(u *unit, wait time.Duration) {
	u.busy++
	u.stored = u.fails > 0 || wait > 0
	c.emit(actBackoff{u.token(), u.fails, wait})
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
