package engine_test

import (
	"fmt"
	"slices"
	"time"

	"leasehold/engine"
)

// many names n installations.
func many(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("bot-%04d", i)
	}
	return ids
}

func drainedNode(r *rig) {
	s := r.open()
	ids := many(6)
	r.install(s, ids...)
	a, b := r.start("a", s), r.start("b", r.open())
	r.within(3*time.Minute, "each has half", func() bool { return connected(a) == 3 && connected(b) == 3 })
	if err := s.DrainNode(r.Context(), "b", true); err != nil { // the other node's store
		r.Fatal(err)
	}
	r.within(12*time.Second, "the other node has everything", func() bool { return connected(a) == len(ids) })
	if st := b.sup.Status(); !st.Drained || st.Held != 0 || st.Draining || st.Session == "" {
		r.Errorf("got drained %v with %d leases, draining %v, session %q; want a node that lives and holds nothing", st.Drained, st.Held, st.Draining, st.Session)
	}
	pass(5 * time.Minute)
	if got := connected(b); got != 0 {
		r.Errorf("got %d connections of the drained node after 5 min, want none", got)
	}

	// Neither a lost session nor a restart is a resume.
	if err := s.EndSession(r.Context(), b.sup.Status().Session); err != nil {
		r.Fatal(err)
	}
	pass(time.Minute)
	b.finish()
	b = r.start("b", r.open())
	pass(5 * time.Minute)
	if st := b.sup.Status(); !st.Drained || st.Held != 0 {
		r.Errorf("got drained %v with %d leases after a restart, want it drained", st.Drained, st.Held)
	}

	// The only other node ends: nobody holds what a drained node must not.
	a.finish()
	pass(2 * time.Minute)
	if got := connected(b); got != 0 {
		r.Errorf("got %d connections of the drained node once it is alone, want none", got)
	}
	if err := b.sup.Resume(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.within(12*time.Second, "everything is back", func() bool { return connected(b) == len(ids) })
	for _, id := range ids {
		if _, most := r.platform.connections(id); most != 1 {
			r.Errorf("%s: got %d connections at once, want 1", id, most)
		}
	}
	b.finish()
}

func drainInTurn(r *rig) {
	s := r.open()
	ids := many(120)
	r.install(s, ids...)
	a := r.start("a", s)
	r.within(time.Minute, "all on one", func() bool { return connected(a) == len(ids) })
	b := r.start("b", r.open())
	pass(10 * time.Second) // it has heard of the other one, and given nothing up yet
	ended := make(chan struct{})
	go func() { defer close(ended); a.finish() }()
	least := len(ids)
	r.within(15*time.Second, "the other node has everything", func() bool {
		now := 0
		for _, id := range ids {
			live, _ := r.platform.connections(id)
			now += live
		}
		least = min(least, now)
		b.sup.Trigger() // it is told of each release
		return connected(b) == len(ids)
	})
	<-ended
	if want := len(ids) - 30; least < want { // three batches
		r.Errorf("got %d of %d connected at the worst moment, want at least %d", least, len(ids), want)
	}
	for _, id := range ids {
		if _, most := r.platform.connections(id); most != 1 || r.platform.runs(id) != 2 {
			r.Errorf("%s: got %d connections at once and %d runs, want 1 and 2", id, most, r.platform.runs(id))
		}
	}
	b.finish()
}

func soleDrained(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	if err := n.sup.Drain(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.within(time.Second, "released", func() bool { st := n.sup.Status(); return st.Drained && st.Held == 0 })
	row, err := s.Installation(r.Context(), "acme")
	if err != nil || row.Owner != "" {
		r.Errorf("got owner %q (%v), want none", row.Owner, err)
	}
	if err := n.sup.Resume(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.within(time.Second, "connected again", func() bool { return n.link("acme").State == engine.Connected })
	n.holder.mu.Lock()
	history := slices.Clone(n.holder.history)
	n.holder.mu.Unlock()
	if got, want := fmt.Sprint(history), "[hold acme drop acme hold acme]"; got != want {
		r.Errorf("got %s told to the holder, want %s", got, want)
	}
	n.finish()
}
