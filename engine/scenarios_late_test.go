package engine_test

import (
	"context"
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

// freshNodeReapsNobody: the store's clock steps ahead while a node is cut off. To a
// process that started after that the node looks dead, and is not.
func freshNodeReapsNobody(r *rig) {
	s := r.open()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	pass(10 * time.Second)
	a.store.breakNext("*", storeRule{times: -1, err: errStoreDown})
	r.skew.Store(int64(20 * time.Second))
	b := r.start("b", r.open())
	r.within(2*time.Minute, "taken over", func() bool { return b.link("acme").State == engine.Connected })
	if _, most := r.platform.connections("acme"); most != 1 {
		r.Errorf("got %d connections at once, want 1", most)
	}
	a.store.breakNext("*", storeRule{})
	b.finish()
	a.finish()
}

// lateFailure: a channel's config is put right while the channel fails for the old one.
func lateFailure(r *rig) {
	s := r.open()
	r.install(s, "acme")
	failing := make(chan struct{})
	r.platform.set("acme", rule{run: func(_ context.Context, l *channel.Link) error {
		l.Go(func() { time.Sleep(500 * time.Millisecond) }) // the term is not over before it
		close(failing)
		return channel.Rejected("auth", errors.New("invalid_auth"))
	}})
	n := r.start("a", s)
	<-failing
	r.platform.set("acme", rule{})
	r.put(s, "acme", "test", "2")
	n.sup.Trigger()
	r.within(2*time.Second, "connected with the new config", func() bool { return n.link("acme").State == engine.Connected })
	pass(2 * time.Second)
	if row, err := s.Installation(r.Context(), "acme"); err != nil || row.Status.Attempts != 0 {
		r.Errorf("got %d attempts stored (%v), want none of the new config's", row.Status.Attempts, err)
	}
	n.finish()
}
