package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
)

func leavesHeldLease(r *rig) {
	s := r.open()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	b := r.start("b", r.open())
	pass(2 * time.Minute)
	if l := b.link("acme"); l.State != engine.Standby {
		r.Errorf("got %s on the other node, want standby", l.State)
	}
	if _, most := r.platform.connections("acme"); most != 1 || r.platform.runs("acme") != 1 {
		r.Errorf("got %d connections and %d runs, want 1 and 1", most, r.platform.runs("acme"))
	}
	b.finish()
	a.finish()
}

func reclaimsAfterExpiry(r *rig) {
	s := r.open()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	b := r.start("b", r.open())
	pass(10 * time.Second)
	a.store.breakNext("*", storeRule{times: -1, err: errStoreDown})
	took := r.within(time.Minute, "taken over", func() bool { return b.link("acme").State == engine.Connected })
	if limit := 40 * time.Second; took > limit {
		r.Errorf("got the takeover after %v, want within the TTL, one renewal and a backoff: %v", took, limit)
	}
	if _, most := r.platform.connections("acme"); most != 1 {
		r.Errorf("got %d connections at once, want 1", most)
	}
	a.store.breakNext("*", storeRule{})
	b.finish()
	a.finish()
}

func reapsOnRemoval(r *rig) {
	s := r.open()
	r.install(s, "acme", "other")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	if err := s.RemoveInstallation(r.Context(), "acme"); err != nil {
		r.Fatal(err)
	}
	n.sup.Trigger()
	r.within(time.Second, "gone", func() bool { now, _ := r.platform.connections("acme"); return now == 0 })
	pass(10 * time.Second)
	if n.holder.held["acme"] != 0 {
		r.Error("got a grant that is still held, want it dropped")
	}
	if now, _ := r.platform.connections("other"); now != 1 {
		r.Errorf("got %d connections of the other, want 1", now)
	}
	n.finish()
}

func lossCancels(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	st := n.sup.Status()
	if err := s.EndSession(r.Context(), st.Session); err != nil {
		r.Fatal(err)
	}
	r.within(6*time.Second, "cancelled", func() bool { return r.platform.runs("acme") == 2 || n.link("acme").Reason == "lease_lost" })
	r.within(20*time.Second, "back under a new session", func() bool { return n.link("acme").State == engine.Connected && n.sup.Status().Session != st.Session })
	n.finish()
}

func releaseIsBounded(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	n.store.breakNext("release", storeRule{times: -1, hang: true})
	began := time.Now()
	n.finish()
	if took := time.Since(began); took > 25*time.Second {
		r.Errorf("got a shutdown of %v with a hung release, want it bounded", took)
	}
}

func staleRelease(r *rig) {
	s := r.open()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	old, _ := s.Installation(r.Context(), "acme")
	st := a.sup.Status()
	if err := s.EndSession(r.Context(), st.Session); err != nil {
		r.Fatal(err)
	}
	b := r.start("b", r.open())
	r.within(20*time.Second, "somebody has it", func() bool {
		return a.link("acme").State == engine.Connected && a.sup.Status().Session != st.Session || b.link("acme").State == engine.Connected
	})
	freed, err := s.Release(r.Context(), st.Session, []engine.Held{{ID: "acme", Epoch: old.Epoch}})
	if err != nil || len(freed) != 0 {
		r.Errorf("got %v freed (%v) by a stale release, want none", freed, err)
	}
	if now, _ := s.Installation(r.Context(), "acme"); now.Owner == "" || now.Epoch <= old.Epoch {
		r.Errorf("got owner %q epoch %d, want a successor above %d", now.Owner, now.Epoch, old.Epoch)
	}
	a.finish()
	b.finish()
}

func twoNodesOneOwner(r *rig) {
	s := r.open()
	ids := []string{"a1", "a2", "a3", "a4", "a5", "a6"}
	r.install(s, ids...)
	a, b := r.start("a", s), r.start("b", r.open())
	r.within(30*time.Second, "all connected", func() bool { return connected(a)+connected(b) == len(ids) })
	pass(5 * time.Minute)
	for _, id := range ids {
		if now, most := r.platform.connections(id); now != 1 || most != 1 {
			r.Errorf("%s: got %d connections now and %d at most, want 1 and 1", id, now, most)
		}
	}
	a.finish()
	b.finish()
}

func connected(n *node) int { return n.sup.Status().Connected }

func lostAcquireAnswer(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s, func(o *engine.Options) {})
	n.store.breakNext("claim", storeRule{times: 1, err: errStoreDown, persisted: true})
	r.within(20*time.Second, "connected all the same", func() bool { return n.link("acme").State == engine.Connected })
	pass(time.Minute)
	if _, most := r.platform.connections("acme"); most != 1 {
		r.Errorf("got %d connections at once, want 1", most)
	}
	n.finish()
}

func clearedLease(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	pass(10 * time.Second)
	row, _ := s.Installation(r.Context(), "acme")
	if freed, err := s.Release(r.Context(), n.sup.Status().Session, []engine.Held{{ID: "acme", Epoch: row.Epoch}}); err != nil || len(freed) != 1 {
		r.Fatalf("got %v (%v), want the lease cleared behind its owner's back", freed, err)
	}
	r.within(6*time.Second, "the old owner ended", func() bool {
		now, _ := r.platform.connections("acme")
		return now == 0 || r.platform.runs("acme") == 2
	})
	if !strings.Contains(r.logs.String(), `"lease lost"`) {
		r.Error("got no line \"lease lost\", want one")
	}
	n.finish()
}

func transientRenewal(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	n.store.breakNext("renew", storeRule{times: 3, err: errStoreDown})
	pass(2 * time.Minute)
	n.store.breakNext("renew", storeRule{times: 3, hang: true, persisted: true})
	pass(2 * time.Minute)
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d runs, want 1: the connection outlives errors within the fence", got)
	}
	n.finish()
}

func oneWayPartition(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	pass(30 * time.Second)
	// Requests arrive, answers do not: the row looks alive and we must not trust it.
	n.store.breakNext("renew", storeRule{times: -1, hang: true, persisted: true})
	took := r.within(time.Minute, "disconnected", func() bool { return strings.Contains(r.logs.String(), "the fence passed") })
	if took > 30*time.Second {
		r.Errorf("got the sockets closed after %v, want before the TTL of 30s", took)
	}
	n.store.breakNext("renew", storeRule{})
	r.within(30*time.Second, "back", func() bool { return n.link("acme").State == engine.Connected })
	n.finish()
}

func oneAttemptPerCluster(r *rig) {
	s := r.open()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(context.Context, *channel.Link) error {
		return channel.Rejected("auth", errors.New("invalid_auth"))
	}})
	nodes := []*node{r.start("a", s), r.start("b", r.open()), r.start("c", r.open())}
	pass(4*time.Minute + 50*time.Second)
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d attempts in five minutes, want 1", got)
	}
	pass(12 * time.Minute)
	if got := r.platform.runs("acme"); got < 2 || got > 3 {
		r.Errorf("got %d attempts in 17 minutes, want a slow probe after 5 and 10 more", got)
	}
	for _, n := range nodes {
		if l := n.link("acme"); l.State == engine.Blocked && l.Detail != "invalid_auth" {
			r.Errorf("got detail %q, want the platform's words", l.Detail)
		}
	}
	r.platform.set("acme", rule{})
	before := r.platform.runs("acme")
	r.put(s, "acme", "test", "2")
	r.within(6*time.Second, "a changed credential is tried at once", func() bool { return r.platform.runs("acme") > before })
	for _, n := range nodes {
		n.finish()
	}
}

func handoverKeepsSchedule(r *rig) {
	s := r.open()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(context.Context, *channel.Link) error {
		return channel.Rejected("auth", errors.New("invalid_auth"))
	}})
	nodes := []*node{r.start("a", s), r.start("b", r.open()), r.start("c", r.open())}
	// holder is the node that has it, once somebody does.
	holder := func(but *node) (n *node) {
		r.within(time.Minute, "somebody has it", func() bool {
			i := slices.IndexFunc(nodes, func(n *node) bool { return n != but && n.sup.Status().Held == 1 })
			if i >= 0 {
				n = nodes[i]
			}
			return i >= 0
		})
		return n
	}
	r.within(10*time.Second, "the first attempt", func() bool { return r.platform.runs("acme") == 1 })
	first := holder(nil)
	pass(30 * time.Second)
	first.finish() // hands over politely
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n == first })
	dead := holder(nil)
	pass(30 * time.Second)
	dead.store.breakNext("*", storeRule{times: -1, err: errStoreDown}) // and that one dies
	last := holder(dead)
	row, err := s.Installation(r.Context(), "acme")
	if got := last.sup.Status().Session; err != nil || row.Owner != got {
		r.Errorf("got owner %q (%v), want the third node's session %q", row.Owner, err, got)
	}
	at := r.platform.runTimes("acme")
	pass(time.Until(at[0].Add(4*time.Minute + 55*time.Second)))
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d attempts within five minutes and over two handovers, want 1", got)
	}
	r.within(4*time.Minute, "the slow probe", func() bool { return r.platform.runs("acme") == 2 })
	dead.store.breakNext("*", storeRule{})
	for _, n := range nodes {
		n.finish()
	}
}

func takenIdentity(r *rig) {
	s := r.open()
	a := r.start("same", s, func(o *engine.Options) { o.Host = "here" })
	r.within(time.Second, "a session", func() bool { return a.sup.Status().Session != "" })
	b := r.start("same", r.open(), func(o *engine.Options) { o.Host = "a clone" })
	if !b.sup.WaitWithTimeout(20 * time.Second) {
		r.Fatal("the clone still runs, want it refused")
	}
	err := <-b.done
	if !errors.Is(err, engine.ErrIdentityTaken) || fault.ExitCode(err) != fault.ExitConfig {
		r.Errorf("got %v (exit %d), want the identity taken (exit %d)", err, fault.ExitCode(err), fault.ExitConfig)
	}
	a.finish()
}

func disabledWithBacklog(r *rig) {
	s := r.open()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(ctx context.Context, l *channel.Link) error {
		l.Ready(channel.Info{})
		if err := l.Accept(ctx, channel.Batch{Events: []channel.Event{{ID: "1", Type: "message"}}}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}})
	n := r.start("a", s)
	r.within(time.Second, "an event", func() bool { return n.holder.accepted() == 1 })
	if err := s.SetEnabled(r.Context(), "acme", false); err != nil {
		r.Fatal(err)
	}
	n.sup.Trigger()
	pass(10 * time.Second)
	row, _ := s.Installation(r.Context(), "acme")
	if row.Owner == "" || n.link("acme").State != engine.Disabled {
		r.Errorf("got owner %q and %s, want it held for its backlog, and disabled", row.Owner, n.link("acme").State)
	}
	items, _ := s.Pending(r.Context(), "acme", 0, "", 10)
	ids := []string{}
	for _, i := range items {
		ids = append(ids, i.WebhookID)
	}
	if _, err := s.DropDeliveries(r.Context(), ids); err != nil {
		r.Fatal(err)
	}
	n.sup.Trigger()
	pass(10 * time.Second)
	if row, _ := s.Installation(r.Context(), "acme"); row.Owner != "" {
		r.Errorf("got owner %q with no backlog left, want it released", row.Owner)
	}
	n.finish()
}

func drainReleases(r *rig) {
	s := r.open()
	r.install(s, "acme", "beta")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(n) == 2 })
	began := time.Now()
	if n.finish(); n.err != nil {
		r.Errorf("got %v, want nil", n.err)
	}
	if took := time.Since(began); took > 300*time.Millisecond {
		r.Errorf("got a drain of %v, want less than 300ms", took)
	}
	for _, id := range []string{"acme", "beta"} {
		if row, _ := s.Installation(r.Context(), id); row.Owner != "" {
			r.Errorf("%s: got owner %q, want it released", id, row.Owner)
		}
	}
	if nodes, err := s.Nodes(r.Context()); err != nil || len(nodes) != 0 {
		r.Errorf("got %d sessions (%v), want none", len(nodes), err)
	}
	n.holder.mu.Lock()
	defer n.holder.mu.Unlock()
	if !slices.Contains(n.holder.history, "drop acme") {
		r.Errorf("got %v, want the holder told to drop", n.holder.history)
	}
}
