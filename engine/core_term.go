package engine

import (
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

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
	// deafLong is the longest time for which a node takes nothing of a type that it
	// cannot reach.
	deafLong = 6 * time.Hour
)

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
	t.deadline = c.now.Add(StableAfter)
	c.freeSlot(t)
	delete(c.ears, t.kind)
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
	case t.exit != nil && (errors.Is(t.exit.Err, ErrFenced) || errors.Is(t.exit.Err, channel.ErrFenced)):
		c.lose(u, "another node has it")
	case t.fp != u.row.Fingerprint: // changed while it ended: its failure is not the new one's
		u.clearBackoff()
	case t.exit == nil:
		c.failed(u, channel.Exit{Code: "wedged", Err: errors.New("the channel did not return")}, up)
	case errors.Is(t.exit.Err, channel.ErrStore):
		u.notBefore = c.now.Add(between(c.o.rand, time.Second, 2*time.Second))
		u.reason, u.detail = "store", t.exit.Err.Error()
	default:
		c.failed(u, *t.exit, up)
	}
}

// failed counts a failure and stores when the next dial is allowed.
func (c *Core) failed(u *unit, exit channel.Exit, up time.Duration) {
	if up >= StableAfter {
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
	c.saveBackoff(u, u.row.Fingerprint, wait)
	if exit.Class == channel.Transient && u.localFails >= deafAfter && c.othersLive() {
		// Perhaps it is only we who cannot reach the platform.
		u.giveUp, u.avoid, u.patience = true, c.now.Add(deafAvoid), forsaken
		c.hearsNothing(u.row.Type)
	}
}

// hearing is how well this node reaches the platforms of a channel type.
type hearing struct {
	failed int // installations given to others for it, since one was connected
	wait   time.Duration
	until  Instant // takes none before
}

// hearsNothing counts an installation that we could not connect. After three of a
// type, and none that could, it is not they but we: others would only shed to us what
// we gave them.
func (c *Core) hearsNothing(channelType string) {
	h := c.ears[channelType]
	if h.failed++; h.failed >= deafAfter {
		h = hearing{wait: min(deafLong, max(deafAvoid, 2*h.wait))}
		h.until = c.now.Add(h.wait)
	}
	c.ears[channelType] = h
}

func (c *Core) deaf(channelType string) bool { return c.now < c.ears[channelType].until }
