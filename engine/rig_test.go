package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/engine"
	"leasehold/store/sqlite"
)

// rig is a bubble with a real SQLite file, a platform in memory, and nodes.
type rig struct {
	*testing.T
	path     string
	platform *platform
	net      *channeltest.Net
	logs     *safeBuffer
	stores   []*sqlite.Store
	skew     time.Duration // of the store's clock
}

// inBubble runs a scenario under synctest.
func inBubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, path: filepath.Join(dir, "leasehold.db"), net: channeltest.NewNet(), logs: &safeBuffer{}}
		r.platform = newPlatform(r)
		f(r)
		for _, s := range r.stores {
			if err := s.Close(); err != nil {
				t.Errorf("close store: %v", err)
			}
		}
		r.platform.close()
	})
}

func (r *rig) sole() *sqlite.Store   { return r.open(sqlite.Open) }
func (r *rig) shared() *sqlite.Store { return r.open(sqlite.Shared) }

func (r *rig) open(f func(context.Context, string, sqlite.Options) (*sqlite.Store, error)) *sqlite.Store {
	r.Helper()
	s, err := f(r.Context(), r.path, sqlite.Options{ReserveBytes: -1, Now: func() time.Time { return time.Now().Add(r.skew) }})
	if err != nil {
		r.Fatalf("open store: %v", err)
	}
	r.stores = append(r.stores, s)
	return s
}

// install adds installations of the type "test".
func (r *rig) install(s *sqlite.Store, ids ...string) {
	r.Helper()
	for _, id := range ids {
		r.put(s, id, "test", "1")
	}
}

func (r *rig) put(s *sqlite.Store, id, kind, fingerprint string) {
	r.Helper()
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
	n := &node{r: r, store: &faultyStore{Store: s}, holder: newHolder(), clock: &shiftClock{Clock: engine.GoClock()}, done: make(chan error, 1)}
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

// platform is what the test channels connect to: a listener in memory whose
// conversations the test steers.
type platform struct {
	r  *rig
	ln net.Listener

	mu    sync.Mutex // guards what follows
	rules map[string]rule
	calls map[string][]time.Time // begins of Run by installation
	live  map[string]int
	most  map[string]int
	built int
}

// rule is how the channel of one installation behaves.
type rule struct {
	build, run func(ctx context.Context, l *channel.Link) error // nil = as usual
	goer       func(l *channel.Link)
	send       func() error
	readyAfter time.Duration
	deaf       bool // ignores its context
}

func newPlatform(r *rig) *platform {
	ln, err := r.net.Listen("platform:1")
	if err != nil {
		r.Fatal(err)
	}
	p := &platform{r: r, ln: ln, rules: map[string]rule{}, calls: map[string][]time.Time{}, live: map[string]int{}, most: map[string]int{}}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // mute until the other end is gone
				_, _ = c.Read(make([]byte, 1))
				_ = c.Close()
			}()
		}
	}()
	return p
}

func (p *platform) close() { _ = p.ln.Close() }

func (p *platform) set(id string, f rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[id] = f
}

func (p *platform) rule(id string) rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules[id]
}

func (p *platform) runs(id string) int { return len(p.runTimes(id)) }

func (p *platform) runTimes(id string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls[id])
}

func (p *platform) connections(id string) (now, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live[id], p.most[id]
}

func (p *platform) count(id string, d int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[id] += d
	p.most[id] = max(p.most[id], p.live[id])
}

type testConfig struct {
	Token channel.Secret `json:"token" channel:"required,connection"`
}

func (p *platform) spec() channel.Spec {
	return channel.Define(channel.Definition[testConfig]{
		Name: "test", Summary: "steered by a test",
		New: func(ctx context.Context, c testConfig) (channel.Channel, error) {
			p.mu.Lock()
			p.built++
			build := p.rules["*build"].build
			p.mu.Unlock()
			if build != nil {
				if err := build(ctx, nil); err != nil {
					return nil, err
				}
			}
			return &testChannel{p, c}, nil
		},
	})
}

type testChannel struct {
	p *platform
	c testConfig
}

func (c *testChannel) Run(ctx context.Context, l *channel.Link) error {
	id := l.Installation()
	rule := c.p.rule(id)
	c.p.mu.Lock()
	c.p.calls[id] = append(c.p.calls[id], time.Now())
	c.p.mu.Unlock()
	if rule.run != nil {
		return rule.run(ctx, l)
	}
	conn, err := l.DialContext(ctx, "tcp", "platform:1")
	if err != nil {
		return err
	}
	c.p.count(id, 1)
	defer c.p.count(id, -1)
	defer func() { _ = conn.Close() }()
	if rule.goer != nil {
		l.Go(func() { rule.goer(l) })
	}
	if rule.readyAfter > 0 {
		time.Sleep(rule.readyAfter)
	}
	l.Ready(channel.Info{Identity: id})
	if rule.deaf {
		select {}
	}
	closed := make(chan error, 1)
	l.Go(func() { _, err := conn.Read(make([]byte, 1)); closed <- err })
	select {
	case <-ctx.Done():
		return nil
	case err := <-closed:
		return err
	}
}

func (c *testChannel) Send(context.Context, channel.Message) (channel.Receipt, error) {
	return channel.Receipt{}, c.p.rule("*send").send()
}

// faultyStore breaks calls in both ways: before they take effect, and after.
type faultyStore struct {
	engine.Store
	mu    sync.Mutex // guards rules
	rules map[string]storeRule
}

type storeRule struct {
	times     int // how many calls it breaks; negative = all
	err       error
	persisted bool // it takes effect all the same
	hang      bool // until the context ends
}

var errStoreDown = errors.New("connection refused")

func (s *faultyStore) breakNext(call string, r storeRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == nil {
		s.rules = map[string]storeRule{}
	}
	s.rules[call] = r
}

func (s *faultyStore) broken(ctx context.Context, call string, do func() error) error {
	s.mu.Lock()
	r, ok := s.rules[call]
	if all, is := s.rules["*"]; is && !ok {
		r, ok, call = all, true, "*"
	}
	if ok && r.times == 0 {
		ok = false
	}
	if ok && r.times > 0 {
		r.times--
		s.rules[call] = r
	}
	s.mu.Unlock()
	if !ok {
		return do()
	}
	if r.persisted {
		if err := do(); err != nil {
			return err
		}
	}
	if r.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.err
}

func (s *faultyStore) OpenSession(ctx context.Context, r engine.SessionRequest) (got engine.Session, err error) {
	err = s.broken(ctx, "open", func() (err error) { got, err = s.Store.OpenSession(ctx, r); return })
	return got, err
}

func (s *faultyStore) RenewSession(ctx context.Context, id string, ttl time.Duration) (got engine.Session, err error) {
	err = s.broken(ctx, "renew", func() (err error) { got, err = s.Store.RenewSession(ctx, id, ttl); return })
	return got, err
}

func (s *faultyStore) List(ctx context.Context, known int64) (got engine.Snapshot, err error) {
	err = s.broken(ctx, "list", func() (err error) { got, err = s.Store.List(ctx, known); return })
	if errors.Is(err, errEmptyList) {
		return engine.Snapshot{Version: known + 1000}, nil
	}
	return got, err
}

// errEmptyList makes a list come back empty and without an error.
var errEmptyList = errors.New("empty")

func (s *faultyStore) Claim(ctx context.Context, session string, ids []string) (got []engine.Grant, err error) {
	err = s.broken(ctx, "claim", func() (err error) { got, err = s.Store.Claim(ctx, session, ids); return })
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (s *faultyStore) BeginTerm(ctx context.Context, t channel.Term, identity string) (run int64, cursor []byte, err error) {
	err = s.broken(ctx, "begin", func() (err error) { run, cursor, err = s.Store.BeginTerm(ctx, t, identity); return })
	return run, cursor, err
}

func (s *faultyStore) Release(ctx context.Context, session string, held []engine.Held) (got []string, err error) {
	err = s.broken(ctx, "release", func() (err error) { got, err = s.Store.Release(ctx, session, held); return })
	return got, err
}

func (s *faultyStore) Accept(ctx context.Context, r engine.AcceptRequest) (got engine.Accepted, err error) {
	err = s.broken(ctx, "accept", func() (err error) { got, err = s.Store.Accept(ctx, r); return })
	return got, err
}

func (s *faultyStore) SaveBackoff(ctx context.Context, t channel.Term, fails int, wait time.Duration) error {
	return s.broken(ctx, "backoff", func() error { return s.Store.SaveBackoff(ctx, t, fails, wait) })
}

func (s *faultyStore) SaveStatus(ctx context.Context, b []engine.TermStatus) error {
	return s.broken(ctx, "status", func() error { return s.Store.SaveStatus(ctx, b) })
}

func (s *faultyStore) Probe(ctx context.Context) error {
	return s.broken(ctx, "probe", func() error { return s.Store.Probe(ctx) })
}
