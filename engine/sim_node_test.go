package engine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// simNode is one process: a production Core and trust, and what the Supervisor
// does around them, in simulated time.
type simNode struct {
	w      *world
	name   string
	gen    int // of the process; what an earlier one began is ignored
	weight int
	gone   bool // for good, once it ends
	up     bool
	core   *Core

	trust    trust
	rate     float64 // of its clocks against true time
	offset   Instant
	previous string
	terms    map[uint64]*simTerm
	timer    int

	frozen    bool
	thawed    []func() // what became due while it stood still
	wokeUntil Instant

	deaf, mute bool // its requests, or its answers, are lost
	lossy      bool // one answer in three is lost
	tardy      bool // its answers come back as late as they may
	slow       time.Duration
	starved    bool // its timers are late by lag
	lag        time.Duration
}

func newSimNode(w *world, i int) *simNode {
	return &simNode{
		w: w, name: fmt.Sprintf("node-%d", i), rate: (w.rand.Float64()*2 - 1) * clockRate,
		offset: Instant(w.rand.Int64N(int64(time.Hour))), weight: 1, terms: map[uint64]*simTerm{},
	}
}

func (n *simNode) bootNow() Instant {
	return n.offset + Instant(float64(n.w.now)*(1+n.rate))
}

func (n *simNode) trueTime(boot Instant) Instant {
	return Instant(float64(boot-n.offset)/(1+n.rate)) + 1
}

// boot starts a process.
func (n *simNode) boot() {
	n.gen++
	n.up, n.frozen, n.thawed = true, false, nil
	n.trust.set(0)
	clear(n.terms)
	t := DefaultTiming()
	if n.w.bug == lateFence {
		t.Margin -= time.Second
	}
	n.core = newCore(coreOptions{
		instance: n.name, previous: n.previous, weight: n.weight, sole: n.w.sole, timing: t, rate: 50, inFlight: 64, handOver: 15 * time.Second,
		known: func(string) bool { return true }, rand: rand.New(rand.NewPCG(n.w.seed, uint64(n.gen)<<32|n.w.rand.Uint64N(1<<32))),
	})
	n.step(inTick{})
}

func (n *simNode) crash() {
	n.up = false
	n.gen++
	for _, t := range n.terms {
		n.w.closed(t.conn)
	}
	clear(n.terms)
}

// after runs f in this process, unless it has died; later if it stands still.
func (n *simNode) after(d time.Duration, f func()) {
	gen := n.gen
	var run func()
	run = func() {
		switch {
		case n.gen != gen || !n.up:
		case n.frozen:
			n.thawed = append(n.thawed, run)
		default:
			f()
		}
	}
	n.w.after(d, run)
}

func (n *simNode) freeze(d time.Duration, kind anomaly) {
	if !n.up || n.frozen {
		return
	}
	n.frozen = true
	gen := n.gen
	n.w.after(d, func() {
		if n.gen != gen {
			return
		}
		n.frozen = false
		n.wokeUntil = n.w.now.Add(wokeGrace)
		if d > watchEvery+stoodFor || kind == suspended {
			n.after(n.w.upTo(100*time.Millisecond), func() { // the pause watch
				if kind == suspended || !n.trust.valid(n.bootNow()) {
					n.killAll()
				}
				n.step(inAnomaly{kind})
			})
		}
		for _, f := range n.thawed {
			n.w.after(n.w.upTo(10*time.Millisecond), f)
		}
		n.thawed = nil
		n.w.after(wokeGrace, func() {
			for _, id := range n.w.db.ids {
				n.w.judgeOverlap(id)
			}
		})
	})
}

func (n *simNode) step(in Input) {
	switch in := in.(type) {
	case simBegun:
		in.t.begun(in.run, in.err)
		return
	case simAccepted:
		in.t.accepted(in.err)
		return
	}
	n.w.trace("%d %s %T", n.w.now, n.name, in)
	actions := n.core.Step(n.bootNow(), in)
	todo := append([]Action(nil), actions...)
	for _, a := range todo {
		n.w.trace(" %T", a)
		n.do(a)
	}
	n.timer++
	timer := n.timer
	if next := n.core.Next(); next != Never {
		d := max(0, n.trueTime(next).Sub(n.w.now))
		n.after(d+n.late(), func() {
			if n.timer == timer {
				n.step(inTick{})
			}
		})
	}
}

// late is how much later than asked a timer of this process fires.
func (n *simNode) late() time.Duration {
	if n.starved {
		return n.lag
	}
	return 0
}

// call sends a request to the store: exec is what happens there at the commit,
// and returns the answer; lost is what the caller learns when none comes in time.
func (n *simNode) call(exec func() Input, lost func(error) Input) {
	w, timeout, gen := n.w, n.core.o.timing.AttemptTimeout, n.gen
	answered := false
	n.after(timeout, func() {
		if !answered {
			answered = true
			n.step(lost(errTimeout))
		}
	})
	if n.deaf {
		return
	}
	there := w.upTo(5 * time.Millisecond)
	if n.slow > 0 && w.often(40) {
		there = timeout/2 + w.upTo(n.slow)
	}
	w.after(there, func() {
		if w.sole && n.gen != gen {
			return // the database is in the process, and ended with it
		}
		answer := exec()
		if n.gen != gen || n.mute || n.lossy && w.often(33) {
			return // the connection that it would go back on is gone
		}
		back := w.upTo(5 * time.Millisecond)
		if n.tardy {
			back = max(back, timeout-there-w.upTo(timeout/20))
		}
		n.after(back, func() {
			if !answered {
				answered = true
				n.step(answer)
			}
		})
	})
}

func (n *simNode) do(a Action) {
	db := n.w.db
	switch a := a.(type) {
	case actTrust:
		n.trust.set(a.fence)
		if a.fence != Never && a.fence != 0 {
			n.after(max(0, n.trueTime(a.fence).Sub(n.w.now)), func() {
				n.after(n.late(), func() {
					if !n.trust.valid(n.bootNow()) {
						n.killAll()
					}
				})
			})
		}
	case actOpen:
		n.previous = a.id
		sent := n.bootNow()
		r := SessionRequest{ID: a.id, Instance: n.name, Previous: a.previous, Host: n.name, TTL: n.core.o.timing.TTL, Weight: n.weight}
		n.call(func() Input { return inSession{a.gen, false, sent, db.time(), db.open(r)} },
			func(err error) Input { return inSession{gen: a.gen, sentAt: sent, err: err} })
	case actRenew:
		sent := n.bootNow()
		n.call(func() Input { return inSession{a.gen, true, sent, db.time(), db.renew(a.id, n.core.o.timing.TTL)} },
			func(err error) Input { return inSession{gen: a.gen, renew: true, sentAt: sent, err: err} })
	case actReap:
		notAfter := Instant(a.notAfter(n.bootNow()).UnixNano())
		n.call(func() Input {
			if db.reap(notAfter) > 0 {
				return inWake{}
			}
			return inTick{}
		}, func(error) Input { return inTick{} })
	case actList:
		n.call(func() Input { return inListed{a.seq, db.list(a.known), nil} },
			func(err error) Input { return inListed{a.seq, Snapshot{}, err} })
	case actClaim:
		n.call(func() Input {
			g, err := db.claim(a.session, a.ids)
			return inClaimed{a.gen, a.ids, g, err}
		}, func(err error) Input { return inClaimed{a.gen, a.ids, nil, err} })
	case actRelease:
		n.call(func() Input { db.release(a.session, a.held); return inReleased{a.gen, a.held, nil} },
			func(err error) Input { return inReleased{a.gen, a.held, err} })
	case actBackoff:
		n.call(func() Input { return inSaved{a.t.Installation, a.t.Epoch, db.backoff(a.t, a.b)} },
			func(err error) Input { return inSaved{a.t.Installation, a.t.Epoch, err} })
	case actProbe:
		n.call(func() Input {
			if db.full {
				return inStore{errFull}
			}
			return inStore{}
		}, func(err error) Input { return inStore{fault.Wrap(fault.ReadOnly, err)} })
	case actDrop:
		takes := n.w.mostly(channel.Goodbye)
		if n.w.calm { // nothing is being delivered
			takes = n.w.upTo(50 * time.Millisecond)
		}
		n.after(takes, func() { n.step(inDropped{a.term.Installation, a.term.Epoch}) })
	case actBegin:
		n.begin(a)
	case actEnd:
		if t := n.terms[a.term]; t != nil {
			t.end()
		}
	case actKill:
		if t := n.terms[a.term]; t != nil {
			t.kill()
		}
	case actDrainSession:
		n.call(func() Input { db.drain(a.id, true); return inTick{} }, func(error) Input { return inTick{} })
	case actEndSession:
		n.call(func() Input { db.end(a.id); return inEnded{} }, func(err error) Input { return inEnded{err} })
	case actExit:
		n.w.fault("%s exits: %v", n.name, a.err)
		n.crash()
		if !n.gone {
			n.w.after(time.Second, n.boot)
		}
	}
}

func (n *simNode) killAll() {
	for _, id := range sortedTerms(n.terms) {
		n.terms[id].kill()
	}
}
