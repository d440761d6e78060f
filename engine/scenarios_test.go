package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

// Where a scenario can be played.
type where int

const (
	anywhere where = iota // one process is enough
	several               // sessions that expire, or several processes: not under the sole owner's lock
	soleOnly              // under that lock
)

// stands are the databases that scenarios are played on.
var stands = []struct {
	name string
	make func(t *testing.T) database
	not  where
}{
	{"SQLite, sole", soleSQLite, several},
	{"SQLite, shared", sharedSQLite, soleOnly},
	{"Postgres", realPostgres, soleOnly},
}

// scenarios are what "done" means for the engine: each name is a promise.
var scenarios = []struct {
	name string
	on   where
	run  func(r *rig)
}{
	{"acquires and connects", anywhere, acquiresAndConnects},
	{"skips an unregistered type without touching its lease", anywhere, skipsUnregisteredType},
	{"hands what the channel hears to the holder", anywhere, handsOver},
	{"leaves a lease held elsewhere alone", several, leavesHeldLease},
	{"reclaims after expiry", several, reclaimsAfterExpiry},
	{"reaps on removal", anywhere, reapsOnRemoval},
	{"restarts on a changed fingerprint in the same sweep, in less than a second", anywhere, restartsOnRotation},
	{"does not restart on an unchanged row", anywhere, keepsUnchangedRow},
	{"backs off on a build error", anywhere, backsOffOnBuildError},
	{"loss cancels the connection", several, lossCancels},
	{"a release is bounded by its time-out", anywhere, releaseIsBounded},
	{"WaitWithTimeout is false while stuck", anywhere, waitWithTimeout},
	{"Wait before Run returns, and Run twice is an error", anywhere, runTwice},
	{"a stale release never clears a successor", several, staleRelease},
	{"two nodes, exactly one owner", several, twoNodesOneOwner},
	{"a lost acquire answer is no lost lease", several, lostAcquireAnswer},
	{"a cleared lease ends the old owner", several, clearedLease},
	{"a transient renewal error recovers before the fence", several, transientRenewal},
	{"a one-way partition disconnects before expiry", several, oneWayPartition},
	{"unsafe intervals are refused, and the defaults are safe", anywhere, unsafeIntervals},
	{"no token appears in any log line", several, noTokenInLogs},
	{"what happens to links, and to the store, is observed in order", anywhere, observesInOrder},
	{"a panic in build, run, send or a goroutine ends its term and nothing else", anywhere, panicsAreIsolated},
	{"a Run that ignores its context is cut off and counted", anywhere, deafRun},
	{"one that does so three times is blocked, and shows it", anywhere, wedgedForGood},
	{"above eight of them the node drains and ends as a failure", anywhere, tooManyLeaks},
	{"a hung list delays nothing that runs", anywhere, hungList},
	{"one empty list drops nothing", anywhere, emptyList},
	{"nor does one that lacks a row", anywhere, shortList},
	{"nothing is dialled just before the fence", several, noDialBeforeTheFence},
	{"skewed clocks change nothing", several, skewedClocks},
	{"a suspend closes every socket and reconnects within seconds", several, suspendReconnects},
	{"a sole owner that slept dials again, and is not fenced", soleOnly, soleSleeps},
	{"leases split fairly, without ping-pong", several, fairSplit},
	{"a node that cannot reach the platform gives its share to the others, and keeps it off", several, deafNode},
	{"a storm is flat", anywhere, stormIsFlat},
	{"a bad credential is tried once, whatever the number of nodes", several, oneAttemptPerCluster},
	{"a handover does not restart the schedule of what is blocked", several, handoverKeepsSchedule},
	{"a fresh process reaps nobody before it has watched the store's clock for a TTL", several, freshNodeReapsNobody},
	{"a failure that comes after its config was changed is not the new one's", anywhere, lateFailure},
	{"a slow dial does not reset the backoff", anywhere, slowDialKeepsBackoff},
	{"a store that takes nothing parks every term until a probe is written", anywhere, parksOnFullStore},
	{"a failed and a failed but persisted store call end alike", several, faultsBothWays},
	{"a fenced accept ends the term at once", several, fencedAccept},
	{"an event that is too large is dropped, counted, and blocks nothing", anywhere, oversizedEvent},
	{"a drain releases every lease and ends the session last", several, drainReleases},
	{"a drained node gives up what it holds, lives on, and takes its share when it is resumed", several, drainedNode},
	{"so does one that is alone", anywhere, soleDrained},
	{"a node that ends hands over as fast as the others may dial", several, drainInTurn},
	{"a superseded link tries three times, then every five minutes", anywhere, supersededSlowsDown},
	{"a taken identity ends the process with the exit code of a config fault", several, takenIdentity},
	{"a disabled installation with a backlog keeps its lease and no connection", anywhere, disabledWithBacklog},
}

func TestScenarios(t *testing.T) {
	const promised = 52
	if len(scenarios) != promised {
		t.Errorf("got %d scenarios, want %d", len(scenarios), promised)
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			for _, stand := range stands {
				if s.on != stand.not {
					t.Run("on "+stand.name, func(t *testing.T) {
						t.Parallel()
						inBubble(t, stand.make(t), s.run)
					})
				}
			}
		})
	}
}

func acquiresAndConnects(r *rig) {
	s := r.open()
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
	s := r.open()
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
	s := r.open()
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

func restartsOnRotation(r *rig) {
	s := r.open()
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
	s := r.open()
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
	s := r.open()
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

func waitWithTimeout(r *rig) {
	s := r.open()
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
	s := r.open()
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

func unsafeIntervals(r *rig) {
	if err := engine.DefaultTiming().Validate(); err != nil {
		r.Errorf("got %v for the defaults, want nil", err)
	}
	s := r.open()
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
		_, err := engine.New(s, mustTypes(r), newHolder(), engine.Options{Instance: "x", Timing: c.timing})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			r.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func noTokenInLogs(r *rig) {
	s := r.open()
	r.install(s, "acme")
	r.platform.set("acme", rule{run: func(context.Context, *channel.Link) error { return errors.New("refused") }})
	n := r.start("a", s)
	pass(10 * time.Minute)
	session := n.sup.Status().Session
	if err := s.EndSession(r.Context(), session); err != nil { // its next renewal says so
		r.Fatal(err)
	}
	pass(time.Minute)
	n.finish()
	if !strings.Contains(r.logs.String(), "renew session failed") {
		r.Error("got no failed renewal in the log, want one to look through")
	}
	if logs := r.logs.String(); strings.Contains(logs, secretToken) || strings.Contains(logs, session) {
		r.Error("got a token of the platform or of the lease in the log, want none")
	}
}

func slowDialKeepsBackoff(r *rig) {
	s := r.open()
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
	s := r.open()
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
