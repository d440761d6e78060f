package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
)

func panicsAreIsolated(r *rig) {
	s := r.open()
	r.install(s, "calm", "run", "goer", "send", "call")
	r.platform.set("run", rule{run: func(context.Context, *channel.Link) error { panic("in run") }})
	r.platform.set("goer", rule{goer: func(l *channel.Link) { l.Guard(func() { panic("in a callback") }) }})
	r.platform.set("*send", rule{send: func() error { panic("in send") }})
	n := r.start("a", s)
	r.within(5*time.Second, "the calm one connected", func() bool { return n.link("calm").State == engine.Connected })
	r.within(5*time.Second, "send connected", func() bool { return n.holder.sender("send") != nil })
	sender := n.holder.sender("send")
	want := channel.Limits{All: channel.Rate{N: 7, Per: time.Second}}
	if got := sender.(channel.Limited).Limits(); got != want {
		r.Errorf("got the limits %+v, want those of the type, %+v", got, want)
	}
	r.within(5*time.Second, "call connected", func() bool { return n.holder.sender("call") != nil })
	if _, err := n.holder.sender("call").(channel.Caller).Call(r.Context(), channel.Call{Method: "m"}); err == nil || channel.Outcome(err) != channel.SendUnknown {
		r.Errorf("got %v from a call that panicked, want an unknown outcome", err)
	}
	writes := channel.Writing{Markup: "discord", Limit: 2000}
	if got := sender.(channel.Writer).Writes(); got != writes {
		r.Errorf("got the writing %+v, want that of the type, %+v", got, writes)
	}
	_, err := sender.Send(r.Context(), channel.Message{})
	if err == nil || channel.Outcome(err) != channel.SendUnknown {
		r.Errorf("got %v from a send that panicked, want an unknown outcome", err)
	}
	r.within(5*time.Second, "all have failed", func() bool {
		return r.platform.runs("run") >= 2 && r.platform.runs("goer") >= 2 && r.platform.runs("send") >= 2
	})
	r.platform.set("*build", rule{build: func(context.Context, *channel.Link) error { panic("in build") }})
	r.put(s, "calm", "test", "2")
	n.sup.Trigger()
	r.within(5*time.Second, "the build failed", func() bool { return n.link("calm").Reason == "panic" })
	r.platform.set("*build", rule{})
	r.within(2*time.Minute, "and recovered", func() bool { return n.link("calm").State == engine.Connected })
	if n.finish(); n.err != nil {
		r.Errorf("got %v, want a node that outlives every panic", n.err)
	}
}

func deafRun(r *rig) {
	s := r.open()
	r.install(s, "acme")
	release := make(chan struct{})
	r.platform.set("acme", rule{run: func(_ context.Context, l *channel.Link) error {
		if _, err := l.DialContext(context.Background(), "tcp", "platform:1"); err != nil {
			return err
		}
		l.Ready(channel.Info{})
		<-release
		if err := l.Accept(context.Background(), channel.Batch{Events: []channel.Event{{ID: "late", Type: "message"}}}); err == nil {
			r.Error("got an accept of a term that was cut off, want it refused")
		}
		return nil
	}})
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	r.platform.set("acme", rule{})
	r.put(s, "acme", "test", "2")
	n.sup.Trigger()
	r.within(6*time.Second, "a second term beside the deaf one", func() bool { return r.platform.runs("acme") == 2 })
	if got := r.net.Live(); got != 1 {
		r.Errorf("got %d open sockets, want 1: the deaf term's are closed under it", got)
	}
	if got := n.sup.Status().Leaked; got != 1 {
		r.Errorf("got %d leaked channels, want 1", got)
	}
	close(release)
	r.within(5*time.Second, "the deaf one came back", func() bool { return n.sup.Status().Leaked == 0 })
	n.finish()
}

// deafFor keeps a term running, whatever it is told, until release is closed.
func deafFor(release <-chan struct{}) rule {
	return rule{run: func(_ context.Context, l *channel.Link) error {
		l.Ready(channel.Info{})
		<-release
		return nil
	}}
}

func wedgedForGood(r *rig) {
	s := r.open()
	r.install(s, "acme", "calm")
	release := make(chan struct{})
	r.platform.set("acme", rule{run: func(_ context.Context, l *channel.Link) error {
		l.Go(func() { <-release }) // Run itself returns
		return errors.New("over")
	}})
	n := r.start("a", s)
	r.within(5*time.Minute, "it is blocked", func() bool { return n.link("acme").State == engine.Blocked && n.link("acme").Reason == "wedged" })
	pass(time.Minute)
	if got := r.platform.runs("acme"); got != 3 {
		r.Errorf("got %d runs, want 3", got)
	}
	if got := n.link("calm").State; got != engine.Connected {
		r.Errorf("got %s of another installation, want it connected", got)
	}
	close(release)
	n.finish()
}

func tooManyLeaks(r *rig) {
	s := r.open()
	release := make(chan struct{})
	r.install(s, "calm")
	for i := range 9 {
		id := fmt.Sprintf("deaf-%d", i)
		r.install(s, id)
		r.platform.set(id, deafFor(release))
	}
	n := r.start("a", s)
	r.within(10*time.Second, "all connected", func() bool { return connected(n) == 10 })
	for i := range 9 {
		r.put(s, fmt.Sprintf("deaf-%d", i), "test", "2")
	}
	n.sup.Trigger()
	r.within(time.Minute, "the node ended", func() bool { return n.sup.WaitWithTimeout(0) })
	close(release)
	if n.finish(); !fault.Is(n.err, fault.Temporary) {
		r.Errorf("got %v, want a temporary fault, so that the service manager starts a fresh process", n.err)
	}
}

func hungList(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	n.store.breakNext("list", storeRule{times: 3, hang: true})
	pass(20 * time.Second)
	r.install(s, "beta")
	r.within(15*time.Second, "lists go on", func() bool { return n.link("beta").State == engine.Connected })
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d runs, want 1", got)
	}
	n.finish()
}

func emptyList(r *rig) {
	s := r.open()
	r.install(s, "acme", "beta", "gamma")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(n) == 3 })
	n.store.breakNext("list", storeRule{times: 1, err: errEmptyList})
	pass(time.Minute)
	for _, id := range []string{"acme", "beta", "gamma"} {
		if got := r.platform.runs(id); got != 1 {
			r.Errorf("%s: got %d runs after one empty list, want 1", id, got)
		}
	}
	n.store.breakNext("list", storeRule{times: -1, err: errEmptyList})
	r.within(20*time.Second, "believed the second time", func() bool { now, _ := r.platform.connections("acme"); return now == 0 })
	n.store.breakNext("list", storeRule{})
	r.within(30*time.Second, "back", func() bool { return connected(n) == 3 })
	n.finish()
}

func shortList(r *rig) {
	s := r.open()
	r.install(s, "acme", "beta", "gamma")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(n) == 3 })
	n.store.breakNext("list", storeRule{times: 1, err: errShortList})
	pass(time.Minute)
	if got := r.platform.runs("acme"); got != 1 {
		r.Errorf("got %d runs of what one list lacked, want 1", got)
	}
	n.store.breakNext("list", storeRule{times: -1, err: errShortList})
	r.within(30*time.Second, "believed the second time", func() bool { now, _ := r.platform.connections("acme"); return now == 0 })
	if now, _ := r.platform.connections("beta"); now != 1 {
		r.Errorf("got %d connections of what was always listed, want 1", now)
	}
	n.finish()
}

func noDialBeforeTheFence(r *rig) {
	s := r.open()
	r.install(s, "acme")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	n.store.breakNext("renew", storeRule{times: -1, err: errors.New("no route")})
	pass(23 * time.Second) // trust ends 26.9 s after the session was opened
	r.install(s, "beta")
	n.sup.Trigger()
	pass(1500 * time.Millisecond)
	if now, _ := r.platform.connections("acme"); now != 1 {
		r.Errorf("got %d connections before the fence, want 1", now)
	}
	if got := r.platform.runs("beta"); got != 0 {
		r.Errorf("got %d dials while the fence was near, want none", got)
	}
	n.store.breakNext("renew", storeRule{})
	r.within(10*time.Second, "connected once it is trusted again", func() bool { return n.link("beta").State == engine.Connected })
	n.finish()
}

func skewedClocks(r *rig) {
	r.skew.Store(int64(61 * time.Second)) // the store's clock runs ahead of the nodes'
	s := r.open()
	r.install(s, "acme", "beta")
	a := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(a) == 2 })
	b := r.start("b", r.open())
	pass(2 * time.Minute)
	r.skew.Store(int64(-61 * time.Second)) // and steps back
	pass(2 * time.Minute)
	r.skew.Store(0)
	pass(3 * time.Minute)
	for _, id := range []string{"acme", "beta"} {
		if now, most := r.platform.connections(id); now != 1 || most != 1 {
			r.Errorf("%s: got %d connections now, %d at most, want 1 and 1", id, now, most)
		}
	}
	b.finish()
	a.finish()
}

func suspendReconnects(r *rig) {
	s := r.open()
	r.install(s, "acme", "beta")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(n) == 2 })
	pass(10 * time.Second)
	n.clock.slept.Add(int64(90 * time.Second))
	took := r.within(300*time.Millisecond, "closed", func() bool { return r.net.Live() == 0 })
	r.Logf("every socket was closed after %v", took)
	r.within(5*time.Second, "reconnected", func() bool { return connected(n) == 2 && r.net.Live() == 2 })
	n.finish()
}

func soleSleeps(r *rig) {
	s := r.open()
	r.install(s, "acme", "beta")
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(n) == 2 })
	session := n.sup.Status().Session
	pass(10 * time.Second)
	n.clock.slept.Add(int64(9 * time.Hour))
	r.within(300*time.Millisecond, "closed", func() bool { return r.net.Live() == 0 })
	r.within(5*time.Second, "reconnected", func() bool { return connected(n) == 2 && r.net.Live() == 2 })
	if got := n.sup.Status().Session; got != session {
		r.Errorf("got session %s, want %s: the lock was ours all the time", got, session)
	}
	if got := n.link("acme").Attempts; got != 0 {
		r.Errorf("got %d failures, want none counted for a sleep", got)
	}
	n.finish()
}

func fairSplit(r *rig) {
	s := r.open()
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("bot-%02d", i))
	}
	r.install(s, ids...)
	a := r.start("a", s)
	r.within(10*time.Second, "all on one", func() bool { return connected(a) == 40 })
	b := r.start("b", r.open())
	r.within(3*time.Minute, "split", func() bool { return connected(a) <= 23 && connected(a)+connected(b) == 40 })
	before := totalRuns(r, ids)
	pass(10 * time.Minute)
	if after := totalRuns(r, ids); after != before {
		r.Errorf("got %d moves after the split, want none", after-before)
	}
	for _, id := range ids {
		if got := r.platform.runs(id); got > 2 {
			r.Errorf("%s: got %d runs, want at most one move", id, got)
		}
	}
	a.finish()
	b.finish()
}

func totalRuns(r *rig, ids []string) int {
	n := 0
	for _, id := range ids {
		n += r.platform.runs(id)
	}
	return n
}

func stormIsFlat(r *rig) {
	s := r.open()
	var ids []string
	for i := range 200 {
		ids = append(ids, fmt.Sprintf("bot-%03d", i))
	}
	r.install(s, ids...)
	n := r.start("a", s, func(o *engine.Options) { o.Connect.PerTypeRate, o.Connect.InFlight = 20, 30 })
	flat := func(what string) {
		var at []time.Time
		for _, id := range ids {
			runs := r.platform.runTimes(id)
			at = append(at, runs[len(runs)-1])
		}
		for _, first := range at {
			in := 0
			for _, t := range at {
				if d := t.Sub(first); d >= 0 && d < time.Second {
					in++
				}
			}
			if in > 20+10 {
				r.Errorf("%s: got %d dials within a second, want the rate of 20 and a burst of 10", what, in)
				return
			}
		}
	}
	r.within(20*time.Second, "all connected", func() bool { return connected(n) == 200 })
	flat("at start")
	pass(2 * time.Minute)
	r.net.Cut()
	r.within(30*time.Second, "all back", func() bool { return connected(n) == 200 && totalRuns(r, ids) == 400 })
	flat("after an outage")
	n.finish()
}

func parksOnFullStore(r *rig) {
	s := r.open()
	r.install(s, "acme", "beta")
	push := make(chan struct{})
	r.platform.set("acme", rule{run: func(ctx context.Context, l *channel.Link) error {
		l.Ready(channel.Info{})
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return nil
			case <-push:
			}
			if err := l.Accept(ctx, channel.Batch{Events: []channel.Event{{ID: fmt.Sprint(i), Type: "message"}}}); err != nil {
				return err
			}
		}
	}})
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return connected(n) == 2 })
	for _, call := range []string{"accept", "probe", "begin", "backoff", "status"} {
		n.store.breakNext(call, storeRule{times: -1, err: fault.Errorf(fault.Full, "%s: no space left on device", call)})
	}
	push <- struct{}{}
	r.within(2*time.Second, "parked", func() bool { return n.link("acme").Reason == "store_full" && n.link("beta").Reason == "store_full" })
	runs := r.platform.runs("acme") + r.platform.runs("beta")
	pass(10 * time.Minute)
	if got := r.platform.runs("acme") + r.platform.runs("beta"); got != runs {
		r.Errorf("got %d dials to a full disk, want none", got-runs)
	}
	if got := n.link("acme").Attempts; got != 0 {
		r.Errorf("got %d failures, want them untouched", got)
	}
	if got := strings.Count(r.logs.String(), `"msg":"backing off"`); got != 2 {
		r.Errorf("got %d times that a link backs off in ten minutes, want once for each", got)
	}
	for _, call := range []string{"accept", "probe", "begin", "backoff", "status"} {
		n.store.breakNext(call, storeRule{})
	}
	r.within(5*time.Second, "back without a restart", func() bool { return connected(n) == 2 })
	n.finish()
}

func faultsBothWays(r *rig) {
	s := r.open()
	for _, call := range []string{"open", "claim", "begin", "release", "backoff", "status", "list"} {
		for _, persisted := range []bool{false, true} {
			what := fmt.Sprintf("%s, persisted %v", call, persisted)
			id := strings.ReplaceAll(what, " ", "-")
			r.install(s, id)
			n := r.start(id, s)
			n.store.breakNext(call, storeRule{times: 1, err: errStoreDown, persisted: persisted})
			r.within(60*time.Second, what, func() bool { return n.link(id).State == engine.Connected })
			if _, most := r.platform.connections(id); most != 1 {
				r.Errorf("%s: got %d connections at once, want 1", what, most)
			}
			n.finish()
			if err := s.RemoveInstallation(r.Context(), id); err != nil {
				r.Fatal(err)
			}
		}
	}
}

func fencedAccept(r *rig) {
	s := r.open()
	r.install(s, "acme")
	push := make(chan struct{})
	ended := make(chan error, 4)
	r.platform.set("acme", rule{run: func(ctx context.Context, l *channel.Link) error {
		l.Ready(channel.Info{})
		select {
		case <-ctx.Done():
			return nil
		case <-push:
		}
		err := l.Accept(ctx, channel.Batch{Events: []channel.Event{{ID: "1", Type: "message"}}})
		ended <- err
		return err
	}})
	n := r.start("a", s)
	r.within(time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	row, _ := s.Installation(r.Context(), "acme")
	if _, err := s.Release(r.Context(), n.sup.Status().Session, []engine.Held{{ID: "acme", Epoch: row.Epoch}}); err != nil {
		r.Fatal(err)
	}
	push <- struct{}{}
	if err := <-ended; !errors.Is(err, channel.ErrFenced) {
		r.Errorf("got %v, want channel.ErrFenced", err)
	}
	if items, _ := s.Pending(r.Context(), "acme", 0, "", 10); len(items) != 0 {
		r.Errorf("got %d deliveries of a fenced accept, want none", len(items))
	}
	r.within(20*time.Second, "back under a new epoch", func() bool { return n.link("acme").State == engine.Connected })
	n.finish()
}

func oversizedEvent(r *rig) {
	s := r.open()
	r.install(s, "acme")
	got := make(chan error, 1)
	r.platform.set("acme", rule{run: func(ctx context.Context, l *channel.Link) error {
		l.Ready(channel.Info{})
		got <- l.Accept(ctx, channel.Batch{Cursor: []byte("c"), Events: []channel.Event{
			{ID: "small", Type: "message"}, {ID: "huge", Type: "message", Text: strings.Repeat("x", 2<<20)}, {ID: "small too", Type: "message"},
		}})
		<-ctx.Done()
		return nil
	}})
	d := &diary{}
	n := r.start("a", s, func(o *engine.Options) { o.Observer = d })
	if err := <-got; !errors.Is(err, channel.ErrTooLarge) {
		r.Errorf("got %v, want channel.ErrTooLarge", err)
	}
	if items, _ := s.Pending(r.Context(), "acme", 0, "", 10); len(items) != 2 {
		r.Errorf("got %d deliveries, want the other two", len(items))
	}
	if got := n.sup.Status().Oversized; got != 1 {
		r.Errorf("got %d oversized events counted, want 1", got)
	}
	if told := d.take(); !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "acme: notice event_too_large event huge ") }) {
		r.Errorf("got %q, want the one that was dropped", told)
	}
	n.finish()
}
