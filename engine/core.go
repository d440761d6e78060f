package engine

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"leasehold/internal/fault"
)

// coreOptions are what a Core needs to know of its node.
type coreOptions struct {
	instance string
	previous string // the session id before this process
	weight   int
	sole     bool
	timing   Timing
	rate     float64       // dials per second and type
	inFlight int           // dials at once, all types
	handOver time.Duration // that a node takes at most to hand over what it has; 0 = none
	known    func(channelType string) bool
	offline  func(channelType string) bool // it dials nothing; nil = none is
	rand     *rand.Rand
}

// Core is the state machine of one node: which leases to claim, keep and give
// up, when to begin, end and kill a term, when not to trust itself. It has no
// goroutine, no clock, no randomness of its own and no I/O: Step is given the
// time and what happened, and answers with what to do. It ignores answers that
// are stale.
//
// It is level-triggered: whatever happens, settle compares what a unit should be
// with what it is, and moves it one step.
type Core struct {
	o   coreOptions
	now Instant
	out []Action

	session session
	list    listing
	claims  claiming
	dials   dialing
	hand    handing
	ears    map[string]hearing // by channel type

	units map[string]*unit
	ids   []string // of units, sorted: the order of everything, so that a seed repeats
	due   dueHeap

	sick     error   // why the store takes nothing; nil = it does
	probeAt  Instant // of the next probe while sick
	probing  bool
	draining bool
	drained  bool // by command: hold nothing until resumed, and live on
	hurried  bool
	parting  parting
	holding  int // leases
	leaked   int // terms whose goroutines never came back
	exitErr  error
	exited   bool
	terms    uint64
}

// leakLimit: above this many goroutines that never came back, the process is
// worth less than a fresh one.
const leakLimit = 8

// probeEvery paces the probes of a store that takes nothing.
const probeEvery = 2 * time.Second

func newCore(o coreOptions) *Core {
	if o.weight <= 0 {
		o.weight = 1
	}
	c := &Core{o: o, units: map[string]*unit{}}
	c.dials.types, c.dials.next = map[string]*typeDials{}, Never
	c.session.previous = o.previous
	c.list.dirty = true
	c.hand.window, c.hand.next = windowMin, Never
	c.ears = map[string]hearing{}
	return c
}

// Step takes one input at now, which never goes back, and returns what to do.
// The slice is valid until the next Step.
func (c *Core) Step(now Instant, in Input) []Action {
	c.now, c.out = max(now, c.now), c.out[:0]
	if c.exited {
		return nil
	}
	// Whatever woke us, a passed fence comes first: sockets before anything else.
	if c.session.open && c.now >= c.session.fence {
		c.loseSession("the fence passed")
	}
	c.take(in)
	c.advance()
	return c.out
}

func (c *Core) take(in Input) {
	switch in := in.(type) {
	case inTick:
	case inWake:
		c.list.at = c.now
		c.list.dirty = true
	case inSession:
		c.sessionAnswered(in)
	case inListed:
		c.listed(in)
	case inClaimed:
		c.claimed(in)
	case inReleased:
		c.released(in)
	case inDropped:
		c.withGrant(in.id, in.epoch, func(u *unit) { u.dropped = true })
	case inSaved:
		c.saved(in)
	case inEnded:
		c.ended()
	case inReady:
		c.withTerm(in.id, in.term, c.ready)
	case inDown:
		c.withTerm(in.id, in.term, func(u *unit) { c.down(u, in.exit) })
	case inPanicked:
		c.withTerm(in.id, in.term, func(u *unit) { c.panicked(u, in.exit) })
	case inSuccessor:
		c.withTerm(in.id, in.term, c.wantSuccessor)
	case inClosed:
		c.withTerm(in.id, in.term, func(u *unit) { u.term.closed = true })
	case inReturned:
		c.returned(in)
	case inFenced:
		c.withGrant(in.id, in.epoch, func(u *unit) { c.lose(u, "another node has it") })
	case inStore:
		c.storeSaid(in.err)
	case inAnomaly:
		c.anomaly(in.kind)
	case inLockLost:
		c.lockLost(in.err)
	case inDrain:
		c.drain(nil)
	case inHurry:
		c.hurry()
	default:
		panic(fmt.Sprintf("engine: unknown input %T", in))
	}
}

// advance does what the time asks for.
func (c *Core) advance() {
	c.sessionDue()
	for len(c.due) > 0 && c.due[0].at <= c.now {
		d := heap.Pop(&c.due).(dueUnit)
		if u := c.units[d.id]; u != nil && u.due == d.at {
			u.due = Never
			c.settle(u)
		}
	}
	if c.sick != nil && !c.probing && c.now >= c.probeAt {
		c.probing = true
		c.emit(actProbe{})
	}
	c.part()
	c.listDue()
	if c.now >= c.hand.next {
		c.handOver()
	}
	c.claim()
	c.pump()
	c.finishDrain()
}

// Next is when Step must be called again at the latest.
func (c *Core) Next() Instant {
	next := c.dials.next
	if c.sick == nil || c.session.open {
		next = min(next, c.session.next())
	}
	if c.session.open && !c.session.ending && !c.list.outstanding {
		next = min(next, c.list.at)
	}
	if len(c.due) > 0 {
		next = min(next, c.due[0].at)
	}
	next = min(next, c.hand.next)
	if c.sick != nil && !c.probing {
		next = min(next, c.probeAt)
	}
	if c.parting.on {
		next = min(next, c.parting.at)
	}
	return next
}

func (c *Core) emit(a Action) { c.out = append(c.out, a) }

// withTerm runs f on the unit whose current term is meant, then settles it.
func (c *Core) withTerm(id string, term uint64, f func(*unit)) {
	if u := c.units[id]; u != nil && u.term != nil && u.term.n == term {
		f(u)
		c.settle(u)
	}
}

func (c *Core) withGrant(id string, epoch int64, f func(*unit)) {
	if u := c.units[id]; u != nil && u.held && u.epoch == epoch {
		f(u)
		c.settle(u)
	}
}

// each visits the units in order; f may not add or remove any.
func (c *Core) each(f func(*unit)) {
	for _, id := range c.ids {
		f(c.units[id])
	}
}

func (c *Core) settleAll() { c.each(c.settle) }

func (c *Core) addUnit(id string) *unit {
	u := &unit{id: id, due: Never, freeAt: Never}
	c.units[id] = u
	i, _ := slices.BinarySearch(c.ids, id)
	c.ids = slices.Insert(c.ids, i, id)
	return u
}

func (c *Core) forget(u *unit) {
	delete(c.units, u.id)
	if i, ok := slices.BinarySearch(c.ids, u.id); ok {
		c.ids = slices.Delete(c.ids, i, i+1)
	}
}

// storeSaid parks every term while the store can take nothing: what is heard
// could not be kept, and reconnecting a thousand platforms to a full disk helps
// nobody.
func (c *Core) storeSaid(err error) {
	c.probing = false
	switch {
	case err == nil && c.sick != nil:
		c.sick = nil
		c.list.at = c.now
		c.renewNow()
	case err != nil:
		if c.sick == nil || fault.Of(c.sick) != fault.Of(err) { // other words for the same are no news of every link
			c.sick = err
		}
		c.probeAt = c.now.Add(probeEvery)
		if fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Gone) {
			c.probeAt = Never // latched: a probe would write to a damaged file
		}
	}
	c.settleAll()
}

func (c *Core) anomaly(kind anomaly) {
	switch kind {
	case paused:
		c.renewNow()
	case suspended:
		if !c.o.sole {
			c.loseSession("the machine slept")
			return
		}
		c.each(func(u *unit) {
			if u.term != nil && !u.term.ending() {
				c.end(u, errSlept)
				c.kill(u)
			}
		})
		c.settleAll()
	}
}

// errSlept ends terms whose sockets died in the machine's sleep.
var errSlept = errors.New("the machine slept")

// lockLost: another process may hold the lock now, or writes go nowhere.
func (c *Core) lockLost(err error) {
	c.loseSession("the store's lock is lost")
	c.exitWith(err)
}

func (c *Core) exitWith(err error) {
	if !c.exited {
		c.exited = true
		c.emit(actExit{err})
	}
}

type dueUnit struct {
	at Instant
	id string
}

type dueHeap []dueUnit

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(dueUnit)) }
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
