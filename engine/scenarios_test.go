package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
)

// scenarios are what "done" means for the engine: each name is a promise.
var scenarios = []struct {
	name string
	run  func(r *rig)
}{
	{"acquires and connects", acquiresAndConnects},
	{"skips an unregistered type without touching its lease", skipsUnregisteredType},
	{"hands what the channel hears to the holder", handsOver},
	{"leaves a lease held elsewhere alone", leavesHeldLease},
	{"reclaims after expiry", reclaimsAfterExpiry},
	{"reaps on removal", reapsOnRemoval},
	{"restarts on a changed fingerprint in the same sweep, in less than a second", restartsOnRotation},
	{"does not restart on an unchanged row", keepsUnchangedRow},
	{"backs off on a build error", backsOffOnBuildError},
	{"loss cancels the connection", lossCancels},
	{"a release is bounded by its time-out", releaseIsBounded},
	{"WaitWithTimeout is false while stuck", waitWithTimeout},
	{"Wait before Run returns, and Run twice is an error", runTwice},
	{"a stale release never clears a successor", staleRelease},
	{"two nodes, exactly one owner", twoNodesOneOwner},
	{"a lost acquire answer is no lost lease", lostAcquireAnswer},
	{"a cleared lease ends the old owner", clearedLease},
	{"a transient renewal error recovers before the fence", transientRenewal},
	{"a one-way partition disconnects before expiry", oneWayPartition},
	{"unsafe intervals are refused, and the defaults are safe", unsafeIntervals},
	{"no token appears in any log line", noTokenInLogs},
	{"a panic in build, run, send or a goroutine ends its term and nothing else", panicsAreIsolated},
	{"a Run that ignores its context is cut off and counted", deafRun},
	{"a hung list delays nothing that runs", hungList},
	{"one empty list drops nothing", emptyList},
	{"skewed clocks change nothing", skewedClocks},
	{"a suspend closes every socket and reconnects within seconds", suspendReconnects},
	{"a sole owner that slept dials again, and is not fenced", soleSleeps},
	{"leases split fairly, without ping-pong", fairSplit},
	{"a storm is flat", stormIsFlat},
	{"a bad credential is tried once, whatever the number of nodes", oneAttemptPerCluster},
	{"a slow dial does not reset the backoff", slowDialKeepsBackoff},
	{"a store that takes nothing parks every term until a probe is written", parksOnFullStore},
	{"a failed and a failed but persisted store call end alike", faultsBothWays},
	{"a fenced accept ends the term at once", fencedAccept},
	{"an event that is too large is dropped, counted, and blocks nothing", oversizedEvent},
	{"a drain releases every lease and ends the session last", drainReleases},
	{"a superseded link tries three times, then every five minutes", supersededSlowsDown},
	{"a taken identity ends the process with the exit code of a config fault", takenIdentity},
	{"a disabled installation with a backlog keeps its lease and no connection", disabledWithBacklog},
}

func TestScenarios(t *testing.T) {
	const promised = 40
	if len(scenarios) != promised {
		t.Errorf("got %d scenarios, want %d", len(scenarios), promised)
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { inBubble(t, s.run) })
	}
}

func acquiresAndConnects(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	n := r.start("a", s)
	took := r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	if took > 150*time.Millisecond {
		r.Errorf("got the first connection after %v, want less than 150ms", took)
	}
	pass(3 * time.Second)
	row, err := s.Installation(r.Context(), "acme")
	if err != nil || row.Status.State != "connected" {
		r.Errorf("got stored state %q (%v), want connected", row.Status.State, err)
	}
	if n.finish(); n.err != nil {
		r.Errorf("got %v from Run, want nil", n.err)
	}
}

func skipsUnregisteredType(r *rig) {
	s := r.sole()
	r.put(s, "odd", "telepathy", "1")
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	pass(time.Minute)
	if l := n.link("odd"); l.State != engine.Blocked || l.Reason != "unknown_type" {
		r.Errorf("got %s (%s), want blocked (unknown_type)", l.State, l.Reason)
	}
	row, err := s.Installation(r.Context(), "odd")
	if err != nil || row.Owner != "" || row.Epoch != 0 {
		r.Errorf("got owner %q epoch %d (%v), want an untouched lease", row.Owner, row.Epoch, err)
	}
	n.finish()
}

func handsOver(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(ctx context.Context, l *channel.Link) error {
		l.Ready(channel.Info{})
		for _, id := range []string{"1", "2", "2"} {
			if err := l.Accept(ctx, channel.Batch{Events: []channel.Event{{ID: id, Type: "message", Text: "hi"}}, Cursor: []byte(id)}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}})
	n := r.start("a", s)
	r.within(time.Second, "two events", func() bool { return n.holder.accepted() == 2 })
	items, err := s.Pending(r.Context(), "acme", 0, "", 10)
	if err != nil || len(items) != 2 {
		r.Errorf("got %d deliveries (%v), want 2: one for each event, once", len(items), err)
	}
	n.finish()
}

func leavesHeldLease(r *rig) {
	s := r.shared()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	b := r.start("b", r.shared())
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
	s := r.shared()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	b := r.start("b", r.shared())
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
	s := r.sole()
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

func restartsOnRotation(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	pass(10 * time.Second)
	before, _ := s.Installation(r.Context(), "acme")
	r.put(s, "acme", "test", "2")
	n.sup.Trigger()
	r.within(time.Second, "rotated", func() bool { return r.platform.runs("acme") == 2 && n.link("acme").State == engine.Connected })
	if _, most := r.platform.connections("acme"); most != 1 {
		r.Errorf("got %d connections at once, want 1", most)
	}
	if after, _ := s.Installation(r.Context(), "acme"); after.Epoch != before.Epoch {
		r.Errorf("got epoch %d, want the same grant %d", after.Epoch, before.Epoch)
	}
	n.finish()
}

func keepsUnchangedRow(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	for range 10 {
		r.put(s, "acme", "test", "1")
		n.sup.Trigger()
		pass(5 * time.Second)
	}
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d runs, want 1", got)
	}
	n.finish()
}

func backsOffOnBuildError(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	r.platform.set("*build", rule{build: func(context.Context, *channel.Link) error { return errors.New("no such region") }})
	n := r.start("a", s)
	r.within(time.Second, "backing off", func() bool { return n.link("acme").State == engine.Backoff })
	if l := n.link("acme"); l.Detail != "no such region" || l.NextAttempt.IsZero() || l.Attempts != 1 {
		r.Errorf("got %+v, want the error, one attempt and the next", l)
	}
	pass(time.Minute)
	r.platform.mu.Lock()
	built := r.platform.built
	r.platform.mu.Unlock()
	if built < 3 || built > 8 {
		r.Errorf("got %d builds in a minute, want a growing backoff", built)
	}
	n.finish()
}

func lossCancels(r *rig) {
	s := r.shared()
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
	s := r.sole()
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

func waitWithTimeout(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	n := r.start("a", s)
	n.holder.stuck = make(chan struct{})
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	n.stop()
	if n.sup.WaitWithTimeout(time.Second) {
		r.Error("got true while the holder still writes, want false")
	}
	close(n.holder.stuck)
	n.finish()
}

func runTwice(r *rig) {
	s := r.sole()
	n := r.start("a", s)
	r.within(time.Second, "a session", func() bool { return n.sup.Status().Session != "" })
	if err := n.sup.Run(r.Context()); err == nil {
		r.Error("got nil from a second Run, want an error")
	}
	n.finish()
	fresh, err := engine.New(s, mustTypes(r), newHolder(), engine.Options{Instance: "x"})
	if err != nil {
		r.Fatal(err)
	}
	fresh.Wait()
	if !fresh.WaitWithTimeout(time.Hour) {
		r.Error("got false before Run, want true")
	}
}

func mustTypes(r *rig) *channel.Types {
	types, err := channel.NewTypes(nil, r.platform.spec())
	if err != nil {
		r.Fatal(err)
	}
	return types
}

func staleRelease(r *rig) {
	s := r.shared()
	r.install(s, "acme")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return a.link("acme").State == engine.Connected })
	old, _ := s.Installation(r.Context(), "acme")
	st := a.sup.Status()
	if err := s.EndSession(r.Context(), st.Session); err != nil {
		r.Fatal(err)
	}
	b := r.start("b", r.shared())
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
	s := r.shared()
	ids := []string{"a1", "a2", "a3", "a4", "a5", "a6"}
	r.install(s, ids...)
	a, b := r.start("a", s), r.start("b", r.shared())
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
	s := r.shared()
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
	s := r.shared()
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
	s := r.shared()
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
	s := r.shared()
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

func unsafeIntervals(r *rig) {
	if err := engine.DefaultTiming().Validate(); err != nil {
		r.Errorf("got %v for the defaults, want nil", err)
	}
	for _, c := range []struct {
		name   string
		timing engine.Timing
		want   string
	}{
		{"renew as long as the ttl", engine.Timing{TTL: 30 * time.Second, RenewEvery: 30 * time.Second, AttemptTimeout: 3 * time.Second, Margin: 3 * time.Second}, "renew_every 30s"},
		{"attempts that do not fit thrice", engine.Timing{TTL: 30 * time.Second, RenewEvery: 5 * time.Second, AttemptTimeout: 10 * time.Second, Margin: 3 * time.Second}, "3 attempts of 10s"},
		{"a margin above the ttl", engine.Timing{TTL: 5 * time.Second, RenewEvery: time.Second, AttemptTimeout: time.Second, Margin: 10 * time.Second}, "margin 10s"},
		{"nothing positive", engine.Timing{TTL: -1, RenewEvery: 5 * time.Second, AttemptTimeout: 3 * time.Second, Margin: 3 * time.Second}, "lease.ttl: must be positive"},
	} {
		_, err := engine.New(r.sole1(), mustTypes(r), newHolder(), engine.Options{Instance: "x", Timing: c.timing})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			r.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func noTokenInLogs(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(context.Context, *channel.Link) error { return errors.New("refused") }})
	n := r.start("a", s)
	pass(10 * time.Minute)
	session := n.sup.Status().Session
	n.finish()
	if logs := r.logs.String(); strings.Contains(logs, secretToken) || strings.Contains(logs, session) {
		r.Error("got a token of the platform or of the lease in the log, want none")
	}
}

func oneAttemptPerCluster(r *rig) {
	s := r.shared()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(context.Context, *channel.Link) error {
		return channel.Rejected("auth", errors.New("invalid_auth"))
	}})
	nodes := []*node{r.start("a", s), r.start("b", r.shared()), r.start("c", r.shared())}
	pass(4*time.Minute + 50*time.Second)
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d attempts in five minutes, want 1", got)
	}
	pass(20 * time.Minute)
	if got := r.platform.runs("acme"); got < 2 || got > 4 {
		r.Errorf("got %d attempts in 25 minutes, want a slow probe after 5 and 10 more", got)
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

func slowDialKeepsBackoff(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(ctx context.Context, _ *channel.Link) error {
		select { // a dial that takes longer than any backoff
		case <-ctx.Done():
		case <-time.After(80 * time.Second):
		}
		return errors.New("no answer")
	}})
	n := r.start("a", s)
	pass(15 * time.Minute)
	if got := n.link("acme").Attempts; got < 6 {
		r.Errorf("got %d failures in a row after slow dials, want them counted on", got)
	}
	n.finish()
}

func supersededSlowsDown(r *rig) {
	s := r.sole()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(context.Context, *channel.Link) error {
		return channel.Superseded(errors.New("terminated by another client"))
	}})
	n := r.start("a", s)
	pass(30 * time.Minute)
	at := r.platform.runTimes("acme")
	if len(at) < 6 || len(at) > 11 {
		r.Errorf("got %d attempts in half an hour, want about 4 quick ones and 5 slow ones", len(at))
	}
	for i := 1; i < len(at); i++ {
		gap := at[i].Sub(at[i-1])
		if i <= 3 && (gap < 5*time.Second || gap > 16*time.Second) || i > 3 && gap < 5*time.Minute {
			r.Errorf("got a gap of %v before attempt %d, want 5-15 s thrice, then 5 min", gap, i+1)
		}
	}
	n.finish()
}

func takenIdentity(r *rig) {
	s := r.shared()
	a := r.start("same", s, func(o *engine.Options) { o.Host = "here" })
	r.within(time.Second, "a session", func() bool { return a.sup.Status().Session != "" })
	b := r.start("same", r.shared(), func(o *engine.Options) { o.Host = "a clone" })
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
	s := r.sole()
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
	s := r.shared()
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
