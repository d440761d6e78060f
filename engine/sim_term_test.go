package engine

import (
	"errors"
	"fmt"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// simTerm is one term and its channel.
type simTerm struct {
	n       *simNode
	id      uint64
	t       channel.Term
	gate    gate
	conn    *simConn
	quiet   bool // it hears nothing: only the fence ends it when the store is away
	wedged  bool // its Run ignores everything
	ended   bool
	over    bool
	closed  bool
	killing bool
}

type simConn struct {
	id    string
	node  *simNode
	term  *simTerm
	live  bool
	ready bool
}

func (n *simNode) begin(a actBegin) {
	t := &simTerm{n: n, id: a.term, t: a.t, gate: gate{trust: &n.trust, boot: n.bootNow}, wedged: n.w.often(2) && !n.w.calm, quiet: n.w.often(50)}
	t.conn = &simConn{id: a.t.Installation, node: n, term: t}
	n.terms[a.term] = t
	db := n.w.db
	var run int64
	var err error
	n.call(func() Input {
		run, err = db.begin(a.t)
		return simBegun{t, run, err}
	}, func(err error) Input { return simBegun{t, 0, err} })
}

// simBegun is the store's answer to a term, not the Core's business.
type simBegun struct {
	t   *simTerm
	run int64
	err error
}

func (t *simTerm) begun(run int64, err error) {
	n, w := t.n, t.n.w
	if err != nil {
		if errors.Is(err, ErrFenced) {
			n.step(inFenced{t.t.Installation, t.t.Epoch})
			t.down(channel.Classify(err))
			return
		}
		n.heard(err)
		t.down(channel.Classify(fmt.Errorf("%w: %w", channel.ErrStore, err)))
		return
	}
	t.t.Run = run
	n.after(w.upTo(300*time.Millisecond), func() {
		switch {
		case t.over || t.ended:
			t.down(channel.Classify(channel.ErrKilled))
		case t.gatePass() != nil:
			t.down(channel.Classify(channel.ErrKilled))
		case w.db.bad[t.conn.id]:
			t.down(channel.Classify(channel.Rejected("auth", errors.New("wrong credential"))))
		case w.often(8) && !w.calm && w.now < Instant(simFaultsFor):
			t.down(channel.Classify(errors.New("connection refused")))
		default:
			w.opened(t.conn)
			n.after(w.upTo(50*time.Millisecond), t.welcome)
		}
	})
}

func (t *simTerm) welcome() {
	if t.over || t.gatePass() != nil {
		return
	}
	t.conn.ready = true
	t.n.step(inReady{t.conn.id, t.id})
	if t.n.w.calm {
		return
	}
	life := t.n.w.upTo(80 * time.Second)
	if t.n.w.often(50) {
		life = 10 * time.Minute
	}
	t.n.after(life, func() {
		if !t.wedged && t.n.w.now < Instant(simFaultsFor) {
			t.down(channel.Classify(errors.New("connection reset")))
		}
	})
	t.act()
}

// act is a connection's life: it speaks, and it writes what it hears.
func (t *simTerm) act() {
	n, w := t.n, t.n.w
	if t.over || t.closed {
		return
	}
	if t.gatePass() == nil && t.conn.live {
		w.said(t.conn)
		if !t.quiet && w.often(30) {
			n.call(func() Input { return simAccepted{t, w.db.accept(t.t)} }, func(err error) Input { return simAccepted{t, err} })
		}
	}
	n.after(200*time.Millisecond+w.upTo(400*time.Millisecond), t.act)
}

type simAccepted struct {
	t   *simTerm
	err error
}

func (t *simTerm) accepted(err error) {
	switch {
	case err == nil || t.over:
	case errors.Is(err, ErrFenced):
		t.kill()
		t.n.step(inFenced{t.t.Installation, t.t.Epoch})
	default:
		t.n.heard(err)
		if !t.wedged {
			t.down(channel.Classify(fmt.Errorf("%w: %w", channel.ErrStore, err)))
		}
	}
}

func (n *simNode) heard(err error) {
	if fault.Store(err) {
		n.step(inStore{err})
	}
}

func (t *simTerm) gatePass() error {
	if t.n.w.bug == gateSkipped {
		return nil
	}
	return t.gate.pass()
}

// end cancels the channel's context.
func (t *simTerm) end() {
	if t.ended || t.over {
		return
	}
	t.ended = true
	if !t.wedged {
		t.n.after(t.n.w.upTo(300*time.Millisecond), func() { t.down(channel.Classify(errors.New("asked to end"))) })
	}
}

// kill shuts the gate at once; the sockets are gone within what D allows.
func (t *simTerm) kill() {
	t.gate.close()
	if t.over || t.killing {
		return
	}
	t.killing = true
	w := t.n.w
	delay := w.upTo(10 * time.Millisecond)
	switch {
	case w.now < t.n.wokeUntil:
	case w.slowKills:
		delay = channel.Goodbye - w.upTo(channel.Goodbye/50)
	case w.often(50):
		delay = w.mostly(channel.Goodbye)
	}
	t.n.after(delay, func() {
		if t.closed {
			return
		}
		t.closed = true
		w.closed(t.conn)
		t.n.step(inClosed{t.conn.id, t.id})
		if !t.wedged {
			t.down(channel.Classify(channel.ErrKilled))
			return
		}
		t.n.after(20*time.Second, func() { t.down(channel.Classify(channel.ErrKilled)) })
	})
}

func (t *simTerm) down(exit channel.Exit) {
	if t.over {
		return
	}
	t.over, t.closed = true, true
	t.gate.close()
	t.n.w.closed(t.conn)
	t.n.step(inDown{t.conn.id, t.id, exit})
	t.n.after(t.n.w.upTo(20*time.Millisecond), func() {
		delete(t.n.terms, t.id)
		t.n.step(inReturned{t.conn.id, t.id})
	})
}

func (simBegun) input()    {}
func (simAccepted) input() {}
