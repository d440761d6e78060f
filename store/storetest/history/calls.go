package history

import (
	"context"
	"strconv"
	"time"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/engine"
)

// opened sees to it that the node has a session; false: there have been enough. An
// opening whose outcome is unknown is repeated.
func (c *client) opened(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nobody {
		return true
	}
	session, ok := c.newSession()
	if !ok {
		return false
	}
	in := input{kind: open, session: session, old: c.last}
	request := engine.SessionRequest{ID: c.name(session), Instance: c.instance, Host: "boot/1", TTL: ttl}
	if c.last != nobody {
		request.Previous = c.name(c.last)
	}
	for ctx.Err() == nil {
		from := time.Since(c.began)
		in.since, _ = c.clock()
		got, err := c.store.OpenSession(ctx, request)
		out := output{answer: answered(err, engine.ErrIdentityTaken)}
		c.add(c, from, all, in, out)
		if out.answer == yes {
			c.told(got.Now)
			c.session, c.last = session, session
			return true
		}
	}
	return false
}

func (c *client) renew(ctx context.Context, session int) {
	if session == nobody {
		return
	}
	from := time.Since(c.began)
	in := input{kind: renew, session: session}
	in.since, _ = c.clock()
	got, err := c.store.RenewSession(ctx, c.name(session), ttl)
	out := output{answer: answered(err, engine.ErrSessionGone, engine.ErrIdentityTaken)}
	switch out.answer {
	case yes:
		c.told(got.Now)
	case no:
		c.closed(session)
	case unknown: // renewed or not, it lives no shorter
		return
	}
	c.add(c, from, all, in, out)
}

func (c *client) end(ctx context.Context, session int) {
	if session == nobody {
		return
	}
	from := time.Since(c.began)
	err := c.store.EndSession(ctx, c.name(session))
	c.add(c, from, all, input{kind: end, session: session}, output{answer: answered(err)})
	if err == nil {
		c.closed(session)
	}
}

// reap asks as a node does: not when the database's clock is past what it must be.
func (c *client) reap(ctx context.Context) {
	const ahead = 20 // ms
	from := time.Since(c.began)
	_, about := c.clock()
	in := input{kind: reap, until: about + ahead}
	n, err := c.store.Reap(ctx, time.UnixMilli(in.until))
	c.add(c, from, all, in, output{answer: answered(err), count: n})
}

func (c *client) list(ctx context.Context) {
	from := time.Since(c.began)
	snap, err := c.store.List(ctx, 0)
	if err != nil {
		return // it changed nothing
	}
	mine := c.current()
	for n, id := range c.leases {
		for _, l := range snap.Leases {
			if l.ID != id {
				continue
			}
			owner := c.number(l.Owner)
			c.add(c, from, n, input{kind: list}, output{epoch: l.Epoch, owner: owner, alive: l.Alive})
			if owner != nobody && owner == mine && !c.holds(n, l.Epoch) {
				c.release(ctx, n, owner, l.Epoch) // granted by a claim whose answer was lost
			}
		}
	}
}

// holds reports whether the node knows of a grant.
func (n *node) holds(lease int, epoch int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.grants {
		if g.lease == lease && g.epoch == epoch {
			return true
		}
	}
	return false
}

func (c *client) claim(parent context.Context, session int) {
	if session == nobody {
		return
	}
	ctx, cancel := c.impatient(parent)
	defer cancel()
	var ids []string
	var asked []int
	for n, id := range c.leases {
		if c.rng.IntN(3) > 0 {
			ids, asked = append(ids, id), append(asked, n)
		}
	}
	from := time.Since(c.began)
	in := input{kind: claim, session: session, late: c.knownDead(session)}
	grants, err := c.store.Claim(ctx, c.name(session), ids)
	for i, n := range asked {
		out := output{answer: no}
		if err != nil {
			out.answer = unknown
		}
		for _, g := range grants {
			if g.ID == ids[i] {
				out = output{epoch: g.Epoch, run: g.Run}
				c.granted(&grant{lease: n, session: session, epoch: g.Epoch, run: g.Run})
			}
		}
		c.add(c, from, n, in, out)
	}
}

func (n *node) granted(g *grant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.grants = append(n.grants, g)
}

// term is the token of the grant's writes.
func (c *client) term(g *grant) channel.Term {
	g.mu.Lock()
	defer g.mu.Unlock()
	return channel.Term{Installation: c.leases[g.lease], Owner: c.name(g.session), Epoch: g.epoch, Run: g.run}
}

// about is a call that the grant's owner and epoch fence.
func about(k kind, g *grant) input { return input{kind: k, session: g.session, epoch: g.epoch} }

func (c *client) begin(parent context.Context, g *grant) {
	ctx, cancel := c.impatient(parent)
	defer cancel()
	from := time.Since(c.began)
	run, cursor, err := c.store.BeginTerm(ctx, c.term(g), "bot")
	out := output{answer: answered(err, engine.ErrFenced), run: run}
	if len(cursor) > 0 {
		out.cursor, err = strconv.Atoi(string(cursor))
		if err != nil {
			out.cursor = -1 // nobody wrote that
		}
	}
	if out.answer == yes {
		g.mu.Lock()
		g.run = run
		g.mu.Unlock()
	}
	c.add(c, from, g.lease, about(begin, g), out)
}

func (c *client) accept(parent context.Context, g *grant) {
	ctx, cancel := c.impatient(parent)
	defer cancel()
	term := c.term(g)
	if c.rng.IntN(6) == 0 && term.Run > 0 {
		term.Run-- // said late, by the term before
	}
	in := about(accept, g)
	in.run, in.event = term.Run, c.newEvent()
	id := strconv.Itoa(in.event)
	from := time.Since(c.began)
	got, err := c.store.Accept(ctx, engine.AcceptRequest{Term: term, Identity: "bot", Cursor: []byte(id), Events: []engine.Heard{{
		Event: channel.Event{ID: id, Type: "message"}, Body: []byte(`{}`), Targets: []string{"app"},
	}}})
	out := output{answer: answered(err, engine.ErrFenced)}
	if out.answer == yes {
		g.mu.Lock()
		g.fresh = append(g.fresh, got.LastSeq)
		g.mu.Unlock()
	}
	c.add(c, from, g.lease, in, out)
}

// mark ends the delivery of an event, once: a second mark would find it done.
func (c *client) mark(parent context.Context, g *grant) {
	ctx, cancel := c.impatient(parent)
	defer cancel()
	g.mu.Lock()
	if len(g.fresh) == 0 {
		g.mu.Unlock()
		return
	}
	seq := g.fresh[0]
	g.fresh = g.fresh[1:]
	g.mu.Unlock()
	from := time.Since(c.began)
	answers, err := c.store.Mark(ctx, []delivery.Mark{{Term: c.term(g), Seq: seq, Target: "app", State: delivery.Delivered, Count: true}})
	if err != nil {
		return // marked or not, the lease is what it was
	}
	c.add(c, from, g.lease, about(mark, g), output{answer: answered(answers[0], delivery.ErrMarkFenced)})
}

func (c *client) release(parent context.Context, lease, session int, epoch int64) {
	ctx, cancel := c.impatient(parent)
	defer cancel()
	from := time.Since(c.began)
	freed, err := c.store.Release(ctx, c.name(session), []engine.Held{{ID: c.leases[lease], Epoch: epoch}})
	out := output{answer: answered(err)}
	if err == nil && len(freed) == 0 {
		out.answer = no
	}
	c.add(c, from, lease, input{kind: release, session: session, epoch: epoch}, out)
}
