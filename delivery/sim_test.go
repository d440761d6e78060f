package delivery

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const never = 10_000 * time.Hour

// simSeeds is how many seeds TestSimulation runs: make soak has a million events.
var simSeeds = flag.Int("sim.seeds", 24, "seeds of the simulation; about 480 events each, to three targets, twice")

// mortal is the outbox as one process sees it: after its death it does nothing
// for it any more.
type mortal struct {
	*fakeOutbox
	dead atomic.Bool
}

func (m *mortal) Pending(ctx context.Context, lease string, seq int64, target string, limit int) ([]Item, error) {
	if m.dead.Load() {
		return nil, errFake
	}
	return m.fakeOutbox.Pending(ctx, lease, seq, target, limit)
}

func (m *mortal) Payloads(ctx context.Context, seqs []int64) ([]Event, error) {
	if m.dead.Load() {
		return nil, errFake
	}
	return m.fakeOutbox.Payloads(ctx, seqs)
}

func (m *mortal) Mark(ctx context.Context, marks []Mark) ([]error, error) {
	if m.dead.Load() {
		return nil, errFake
	}
	return m.fakeOutbox.Mark(ctx, marks)
}

// world is several processes, a store, and three targets that fail at random.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	mu    sync.Mutex // guards rng
	box   *fakeOutbox
	nodes []*node
	where map[string]*node // who holds a lease
	sinks map[string]*fakeSink
	calm  atomic.Bool

	dead     int  // dead letters
	batch    int  // of the targets, as they stand in the config
	immortal bool // no process dies and no lease changes hands
}

type node struct {
	*bench
	box *mortal
}

func (w *world) chance(p float64) bool { return w.float() < p }
func (w *world) float() float64        { w.mu.Lock(); defer w.mu.Unlock(); return w.rng.Float64() }
func (w *world) n(n int) int           { return int(w.float() * float64(n)) }

// answer is a target: quick or slow, broken for a while, refusing at random.
func (w *world) answer(badTill *atomic.Int64) func(context.Context, Delivery) Result {
	return func(ctx context.Context, d Delivery) Result {
		timer := time.NewTimer(time.Duration(w.n(200)) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return Result{Outcome: Aborted}
		}
		if w.calm.Load() {
			return Result{Outcome: Taken}
		}
		if time.Now().UnixMilli() < badTill.Load() {
			return Result{Outcome: []Outcome{Down, Broken, Slow}[badTill.Load()%3], Reason: "outage"}
		}
		if w.chance(0.001) {
			badTill.Store(time.Now().Add(time.Duration(w.n(300)) * time.Second).UnixMilli())
		}
		if w.chance(0.05) {
			return Result{Outcome: []Outcome{Refused, Broken, Slow, Down}[w.n(4)], Reason: "bad luck", After: time.Duration(w.n(2)) * time.Second}
		}
		return Result{Outcome: Taken}
	}
}

// targets are the three as they stand in the config. The first two never give up; the
// third soon does.
func (w *world) targets() []Target {
	return []Target{
		{Name: "hold", Sink: w.sinks["hold"], OnFailure: Hold, MaxAttempts: 1 << 20, MaxAge: 1 << 62, Concurrency: 4, Batch: w.batch},
		{Name: "skip", Sink: w.sinks["skip"], MaxAttempts: 1 << 20, MaxAge: 1 << 62, Concurrency: 4, Batch: w.batch},
		{Name: "tired", Sink: w.sinks["tired"], MaxAttempts: 1, MaxAge: 3 * time.Minute, Concurrency: 4, Batch: w.batch},
	}
}

// change gives a running node other targets: with other numbers, another order,
// another sink to the same place, or without one of them for a while.
func (w *world) change(n *node) {
	targets := w.targets()
	for i := range targets {
		t := &targets[i]
		if w.chance(0.3) {
			t.Sink = &closingSink{t: w.t, fakeSink: w.sinks[t.Name]}
		}
		if w.chance(0.2) {
			t.Order = PerInstallation
		}
		t.Concurrency, t.Batch = 1+w.n(4), w.n(2)*w.n(6)
	}
	if w.chance(0.3) {
		i := w.n(len(targets))
		targets = slices.Delete(targets, i, i+1)
	}
	n.set(targets...)
}

// closingSink is a sink that sees to it that nobody uses it after its end.
type closingSink struct {
	*fakeSink
	t      *testing.T
	mu     sync.Mutex // guards what follows
	calls  int
	closed bool
}

func (s *closingSink) enter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.t.Errorf("got a call of a sink that is closed, want none")
	}
	s.calls += n
}

func (s *closingSink) Deliver(ctx context.Context, d Delivery) Result {
	s.enter(1)
	defer s.enter(-1)
	return s.fakeSink.Deliver(ctx, d)
}

func (s *closingSink) DeliverBatch(ctx context.Context, all []Delivery) Result {
	s.enter(1)
	defer s.enter(-1)
	return s.fakeSink.DeliverBatch(ctx, all)
}

func (s *closingSink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.calls > 0 {
		s.t.Errorf("got a close with %d calls under way (closed before: %v), want one when they are done", s.calls, s.closed)
	}
	s.closed = true
	return nil
}

func (w *world) boot() *node {
	m := &mortal{fakeOutbox: w.box}
	d, err := New(m, w.targets(), Options{Random: w.float})
	if err != nil {
		w.t.Fatal(err)
	}
	d.limits = limits{window: 24, total: 100, page: 9, sweep: never, reread: never} // nothing heals what we forget
	b := launch(w.t, d)
	return &node{bench: b, box: m}
}

// take gives a lease to a node under a new epoch.
func (w *world) take(lease string, n *node) {
	w.where[lease] = n
	n.Hold(w.box.grant(lease))
}

// step lets one thing happen.
func (w *world) step(leases []string) {
	lease := leases[w.n(len(leases))]
	if w.chance(0.05) {
		w.change(w.nodes[w.n(len(w.nodes))])
	}
	x := w.float()
	switch {
	case w.immortal && x >= 0.94 && x < 0.985:
	case x < 0.80: // somebody writes
		seq := w.box.say(lease, fmt.Sprint("C", w.n(6)), "hold", "skip", "tired")
		w.where[lease].Accepted(w.box.term(lease), seq)
	case x < 0.86: // the store fails for a while, in either way
		ops := [][]string{{"mark"}, {"pending"}, {"payloads"}, {"mark", "pending", "payloads"}}[w.n(4)]
		w.box.setFault(faultMode(1+w.n(2)), ops...)
		if w.chance(0.5) {
			time.Sleep(time.Duration(w.n(3000)) * time.Millisecond)
		}
	case x < 0.92:
		w.box.setFault(works)
	case x < 0.94: // somebody replays or drops
		w.where[lease].Wake(lease)
	case x < 0.97: // handed over
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.n(2000))*time.Millisecond)
		w.where[lease].Drop(ctx, w.box.term(lease))
		cancel()
		w.take(lease, w.nodes[w.n(len(w.nodes))])
	case x < 0.985: // a process dies, and another one comes
		i := w.n(len(w.nodes))
		old := w.nodes[i]
		old.box.dead.Store(true)
		old.end()
		w.nodes[i] = w.boot()
		for _, l := range leases {
			if w.where[l] == old {
				w.take(l, w.nodes[w.n(len(w.nodes))])
			}
		}
	default: // time passes
		time.Sleep(time.Duration(w.n(120)) * time.Second)
	}
	time.Sleep(time.Duration(w.n(50)) * time.Millisecond)
}

// judge checks what the targets saw against what was stored.
func (w *world) judge() {
	for _, r := range w.box.waiting() {
		w.t.Errorf("%s: event %d waits, want it delivered", r.Target, r.Seq)
	}
	for i, n := range w.nodes {
		same(w.t, fmt.Sprintf("node %d: entries in memory", i), n.entries(), 0)
		same(w.t, fmt.Sprintf("node %d: active leases", i), n.Stats().Active, 0)
	}
	for name, sink := range w.sinks {
		ids := map[string]string{}
		for _, d := range sink.tries() {
			if old, ok := ids[d.EventID]; ok && old != d.ID {
				w.t.Errorf("%s: %s came as %s and as %s, want one id", name, d.EventID, old, d.ID)
			}
			ids[d.EventID] = d.ID
		}
		if name == "tired" {
			w.dead += w.givenUp(ids)
		} else {
			same(w.t, name+": events taken", len(ids), int(w.box.last()))
		}
		taken := sink.got()
		slices.Sort(taken)
		if n := len(taken) - len(slices.Compact(taken)); w.immortal && n != 0 {
			w.t.Errorf("%s: %d events were taken again, want none while we live", name, n)
		}
	}
	for _, fault := range disorder(w.box, w.sinks["hold"].got()) {
		w.t.Error(fault)
	}
}

// givenUp counts what the third target did not take: each has its reason, and still its
// payload.
func (w *world) givenUp(tried map[string]string) (dead int) {
	taken := map[string]bool{}
	for _, id := range w.sinks["tired"].got() {
		taken[id] = true
	}
	for seq := int64(1); seq <= w.box.last(); seq++ {
		r := w.box.row(seq, "tired")
		switch id := fmt.Sprintf("evt_%d", seq); {
		case r.state == Delivered && taken[id]:
			continue
		case r.state != Dead, r.err == "", tried[id] == "" && r.Attempts > 0:
			w.t.Errorf("tired: event %d is %v after %d attempts for %q, want it taken, or dead with its reason", seq, r.state, r.Attempts, r.err)
		default:
			dead++
		}
		if kept, err := w.box.Payloads(w.t.Context(), []int64{seq}); err != nil || len(kept) != 1 || len(kept[0].Body) == 0 {
			w.t.Errorf("tired: event %d: got %d payloads, %v, want its own", seq, len(kept), err)
		}
	}
	return dead
}

// disorder lists the events that were first taken after a later one of their conversation.
func disorder(box *fakeOutbox, taken []string) []string { return disorderOf(box, "hold", taken) }

func disorderOf(box *fakeOutbox, target string, taken []string) (faults []string) {
	last, seen := map[laneKey]int64{}, map[string]bool{}
	for _, id := range taken {
		if seen[id] {
			continue
		}
		seen[id] = true
		var seq int64
		_, _ = fmt.Sscanf(id, "evt_%d", &seq)
		x := box.row(seq, target)
		key := keyOf(&x.Item, PerConversation)
		key.installation += x.lease
		if seq < last[key] {
			faults = append(faults, fmt.Sprintf("event %d of %v was taken after %d, want order", seq, key, last[key]))
		}
		last[key] = seq
	}
	return faults
}

// simulate lets a world go on for some steps, then waits until all is calm.
func simulate(t *testing.T, seed uint64, steps int, immortal bool) (c counts) {
	t.Helper()
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), box: newOutbox(), where: map[string]*node{}, immortal: immortal, batch: int(seed%3) * 4,
		sinks: map[string]*fakeSink{"hold": {}, "skip": {}, "tired": {}},
	}
	w.box.lag = func() time.Duration { return time.Duration(w.n(4)*w.n(15)) * time.Millisecond }
	for _, s := range w.sinks {
		s.answer = w.answer(&atomic.Int64{})
	}
	w.nodes = []*node{w.boot(), w.boot()}
	leases := []string{"a", "b", "c"}
	for _, l := range leases {
		w.take(l, w.nodes[0])
	}
	for range steps {
		w.step(leases)
	}
	w.calm.Store(true)
	w.box.setFault(works)
	for _, n := range w.nodes {
		n.set(w.targets()...)
	}
	time.Sleep(13 * time.Hour) // beyond the longest wait, twice
	w.judge()
	c.events, c.dead = int(w.box.last()), w.dead
	for name, s := range w.sinks {
		if name != "tired" {
			c.again += len(s.got()) - c.events
		}
		c.batches += len(s.sizes())
	}
	for _, n := range w.nodes {
		n.end()
	}
	return c
}

// counts are what a simulation met.
type counts struct{ events, again, batches, dead int }

func (c *counts) add(o counts) {
	c.events, c.again, c.batches, c.dead = c.events+o.events, c.again+o.again, c.batches+o.batches, c.dead+o.dead
}

func TestSimulation(t *testing.T) {
	const steps = 600
	var all counts
	for seed := range uint64(*simSeeds) {
		t.Run(fmt.Sprintf("seed %d: nothing is lost, out of order, or under two ids", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { all.add(simulate(t, seed, steps, false)) })
		})
		t.Run(fmt.Sprintf("seed %d: nothing is delivered twice while we live", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { all.add(simulate(t, seed, steps, true)) })
		})
	}
	t.Logf("%d events to three targets, %d deliveries repeated, %d batches, %d dead letters", all.events, all.again, all.batches, all.dead)
	if all.again == 0 || all.batches == 0 || all.dead == 0 {
		t.Errorf("got %+v, want a simulation that meets some of each", all)
	}
}

func TestDisorder(t *testing.T) {
	t.Run("a swap is found, a repeat is none", func(t *testing.T) {
		box := newOutbox()
		for range 3 {
			box.say("a", "C1", "hold")
		}
		same(t, "faults of a repeat", len(disorder(box, evt(1, 2, 1, 3))), 0)
		same(t, "faults of a swap", len(disorder(box, evt(1, 3, 2))), 1)
	})
}
