package engine_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"leasehold/engine"
)

// grants counts what a node was ever granted.
func grants(n *node) int {
	n.holder.mu.Lock()
	defer n.holder.mu.Unlock()
	held := 0
	for _, h := range n.holder.history {
		if strings.HasPrefix(h, "hold ") {
			held++
		}
	}
	return held
}

// deafNode: one of two nodes cannot reach the platform. Its share goes to the other,
// and the balance does not bring it back.
func deafNode(r *rig) {
	s := r.open()
	ids := many(12)
	r.install(s, ids...)
	a := r.start("a", s)
	r.within(10*time.Second, "connected", func() bool { return connected(a) == len(ids) })
	b := r.start("b", r.open(), func(o *engine.Options) {
		o.Connect.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }
	})
	r.within(3*time.Minute, "the deaf node is given something", func() bool { return grants(b) > 0 })
	r.within(5*time.Minute, "all on the one that hears", func() bool { return connected(a) == len(ids) && b.sup.Status().Held == 0 })
	// Once it has found out that nobody wants what is above its share, it keeps it.
	pass(3 * time.Minute)
	before := totalRuns(r, ids)
	pass(4 * time.Minute)
	if got := totalRuns(r, ids) - before; got != 0 || connected(a) != len(ids) {
		r.Errorf("got %d connects in four minutes and %d of %d connections, want every one left alone", got, connected(a), len(ids))
	}
	if got := grants(b); got >= len(ids) {
		r.Errorf("got %d grants of the deaf node, want it to take no more once it knows", got)
	}
	a.finish()
	b.finish()
}
