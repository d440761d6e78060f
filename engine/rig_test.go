package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/engine"
	"leasehold/store"
)

// rig is a bubble with a real database, a platform in memory, and nodes.
type rig struct {
	*testing.T
	database database
	platform *platform
	net      *channeltest.Net
	logs     *safeBuffer
	stores   []store.Store
	skew     atomic.Int64 // of the store's clock, nanoseconds
}

// inBubble runs a scenario under synctest, on a database made outside of it.
func inBubble(t *testing.T, d database, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, database: d, net: channeltest.NewNet(), logs: &safeBuffer{}}
		r.platform = newPlatform(r)
		f(r)
		for _, s := range r.stores {
			if err := s.Close(); err != nil {
				t.Errorf("close store: %v", err)
			}
		}
		d.leave(r)
		r.platform.close()
	})
}

// open opens the database once more, as another process would.
func (r *rig) open() store.Store {
	r.Helper()
	s, err := r.database.open(r)
	if err != nil {
		r.Fatalf("open store: %v", err)
	}
	r.stores = append(r.stores, s)
	return s
}

// now is the time on the store's clock.
func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.skew.Load())) }

// install adds installations of the type "test".
func (r *rig) install(s store.Store, ids ...string) {
	r.Helper()
	for _, id := range ids {
		r.put(s, id, "test", "1")
	}
}

func (r *rig) put(s store.Store, id, kind, fingerprint string) {
	r.Helper()
	r.database.tick(r)
	revision := int64(0)
	if old, err := s.Installation(r.Context(), id); err == nil {
		revision = old.Revision
	}
	row := admin.Installation{ID: id, Type: kind, Enabled: true, Source: "api", Fingerprint: fingerprint, Config: json.RawMessage(`{"token":{"env":"TOKEN"}}`)}
	if _, err := s.PutInstallation(r.Context(), row, revision); err != nil {
		r.Fatalf("put %s: %v", id, err)
	}
}

// node is one Supervisor on a store.
type node struct {
	r      *rig
	sup    *engine.Supervisor
	store  *faultyStore
	holder *holder
	clock  *shiftClock
	stop   context.CancelFunc
	done   chan error
	err    error
}

type nodeOption func(*engine.Options)

func (r *rig) start(name string, s engine.Store, opts ...nodeOption) *node {
	r.Helper()
	n := &node{r: r, store: &faultyStore{Store: s, tick: func() { r.database.tick(r) }}, holder: newHolder(), clock: &shiftClock{Clock: engine.GoClock()}, done: make(chan error, 1)}
	types, err := channel.NewTypes(func(string, string) (string, error) { return secretToken, nil }, r.platform.spec())
	if err != nil {
		r.Fatal(err)
	}
	o := engine.Options{
		Instance: name, Host: name, Name: name, Clock: n.clock, DrainTimeout: 10 * time.Second,
		Log:     slog.New(slog.NewJSONHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Connect: engine.Connect{Dial: r.net.DialContext},
	}
	for _, f := range opts {
		f(&o)
	}
	if n.sup, err = engine.New(n.store, types, n.holder, o); err != nil {
		r.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.done <- n.sup.Run(ctx) }()
	return n
}

// finish drains the node, keeps what Run returned, and fails when it does not
// end within 40 s.
func (n *node) finish() {
	n.r.Helper()
	n.stop()
	if !n.sup.WaitWithTimeout(40 * time.Second) {
		n.r.Fatal("the node did not stop within 40 s")
	}
	n.err = <-n.done
}

func (n *node) link(id string) engine.LinkStatus {
	for _, l := range n.sup.Status().Links {
		if l.Installation == id {
			return l
		}
	}
	return engine.LinkStatus{}
}

// within waits in bubble time until ok, and fails after d.
func (r *rig) within(d time.Duration, what string, ok func() bool) time.Duration {
	r.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > d {
			r.Fatalf("%s: not within %v\n%s", what, d, r.logs.tail(4000))
		}
		time.Sleep(min(d/50+time.Millisecond, 100*time.Millisecond))
	}
}

// pass lets bubble time go by.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

const secretToken = "xoxb-planted-secret-7Q2w"

// shiftClock is a node's clock that can jump: the machine slept.
type shiftClock struct {
	engine.Clock
	slept atomic.Int64
}

func (c *shiftClock) Boot() engine.Instant {
	return c.Clock.Boot().Add(time.Duration(c.slept.Load()))
}

// holder is a Holder that records.
type holder struct {
	mu      sync.Mutex // guards what follows
	held    map[string]int64
	live    map[string]channel.Sender
	seqs    []int64
	history []string
	stuck   chan struct{} // Drop waits for it, or for its context
}

func newHolder() *holder { return &holder{held: map[string]int64{}, live: map[string]channel.Sender{}} }

func (h *holder) note(format string, args ...any) {
	h.history = append(h.history, fmt.Sprintf(format, args...))
}

func (h *holder) Hold(t channel.Term) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[t.Installation] = t.Epoch
	h.note("hold %s", t.Installation)
}

func (h *holder) Live(t channel.Term, s channel.Sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[t.Installation] = s
}

func (h *holder) Targets(channel.Term, *channel.Event) []string { return []string{"app"} }

func (h *holder) Accepted(_ channel.Term, seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seqs = append(h.seqs, seq)
}

func (h *holder) Ask(context.Context, channel.Term, channel.Event) (json.RawMessage, bool) {
	return nil, false
}

func (h *holder) Drop(ctx context.Context, t channel.Term) {
	h.mu.Lock()
	stuck := h.stuck
	h.note("drop %s", t.Installation)
	delete(h.held, t.Installation)
	h.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
		}
	}
}

func (h *holder) sender(id string) channel.Sender {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live[id]
}

func (h *holder) accepted() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seqs)
}

// safeBuffer collects log lines.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safeBuffer) tail(n int) string {
	all := s.String()
	return all[max(0, len(all)-n):]
}
