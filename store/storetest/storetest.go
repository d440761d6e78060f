// Package storetest is what every store promises, as one test suite.
//
// Run holds a store to each promise of engine.Store, delivery.Outbox,
// outbound.Postbox, admin.Store and vault.Store, and of the maintenance that store.Store adds. A write is tried in
// three forms: it succeeds; it fails and nothing happened; it succeeds and its
// answer is lost. In the latter two the call is made again, as its caller would,
// and the promise must hold then. Another database supplies a Harness and
// nothing else; there is no SQL here.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/vault"
	"leasehold/store/maintenance"
)

// Store is what is tested; it is store.Store without importing the databases.
type Store interface {
	engine.Store
	delivery.Outbox
	outbound.Postbox
	admin.Store
	vault.Store
	Watch(ctx context.Context) <-chan struct{}
	Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error)
	Seed(ctx context.Context, want []admin.Installation) (added []string, seeded bool, err error)
	HoldTask(ctx context.Context, session, task string) (admin.TaskHolder, error)
	Upkeep(ctx context.Context) (maintenance.Tended, error)
	Audit(ctx context.Context, since int64) (maintenance.Audited, error)
	Waiting(ctx context.Context) (maintenance.Waiting, error)
	GiveWay(ctx context.Context, bytes int64, reason string) (maintenance.GivenUp, error)
	Close() error
}

// Clock is the database's clock, in the hands of the test. It stands still.
type Clock struct {
	// Set is told of every new time before Step returns, where the database keeps a
	// clock of its own; nil = it asks Now.
	Set func(now time.Time)

	mu  sync.Mutex // guards now
	now time.Time
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Step moves the clock, backwards too.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	if c.Set != nil {
		c.Set(c.now)
	}
}

// Harness makes one subtest's database. Open opens it as one more node, and
// closes it at the subtest's end; OpenSole opens it as the only process that
// there is, nil for a database that has no such thing. Fail breaks the next
// commit of a store that one of the two returned: before it takes effect, or
// after, when only the answer is lost.
type Harness struct {
	Open     func() Store
	OpenSole func() Store
	Fail     func(s Store, persisted bool)
}

// Run runs the suite. build is called once per subtest with the clock that the
// database must go by.
func Run(t *testing.T, build func(t *testing.T, c *Clock) Harness) {
	r := &runner{build: build}
	t.Run("sessions", func(t *testing.T) { r.sessions(t) })
	t.Run("sole", func(t *testing.T) { r.sole(t) })
	t.Run("leases", func(t *testing.T) { r.leases(t) })
	t.Run("terms", func(t *testing.T) { r.terms(t) })
	t.Run("list", func(t *testing.T) { r.list(t) })
	t.Run("accept", func(t *testing.T) { r.accept(t) })
	t.Run("fence", func(t *testing.T) { r.fence(t) })
	t.Run("status and budget", func(t *testing.T) { r.status(t) })
	t.Run("outbox", func(t *testing.T) { r.outbox(t) })
	t.Run("postbox", func(t *testing.T) { r.postbox(t) })
	t.Run("parts", func(t *testing.T) { r.parts(t) })
	t.Run("messages", func(t *testing.T) { r.messages(t) })
	t.Run("replies", func(t *testing.T) { r.replies(t) })
	t.Run("follow-ups", func(t *testing.T) { r.followUps(t) })
	t.Run("named messages", func(t *testing.T) { r.namedMessages(t) })
	t.Run("installations", func(t *testing.T) { r.installations(t) })
	t.Run("reconcile", func(t *testing.T) { r.reconcile(t) })
	t.Run("targets", func(t *testing.T) { r.targets(t) })
	t.Run("events", func(t *testing.T) { r.events(t) })
	t.Run("deliveries", func(t *testing.T) { r.deliveries(t) })
	t.Run("replay", func(t *testing.T) { r.replay(t) })
	t.Run("nodes and tasks", func(t *testing.T) { r.nodes(t) })
	t.Run("tasks", func(t *testing.T) { r.tasks(t) })
	t.Run("backlog", func(t *testing.T) { r.backlog(t) })
	t.Run("sweep", func(t *testing.T) { r.sweep(t) })
	t.Run("tokens", func(t *testing.T) { r.tokens(t) })
	t.Run("vault", func(t *testing.T) { r.vault(t) })
}

type runner struct {
	build func(t *testing.T, c *Clock) Harness
}

// form is how a write goes.
type form int

const (
	plain     form = iota
	failed         // and nothing happened
	persisted      // but the answer was lost
)

var formNames = [...]string{"", " (failed, then repeated)", " (answer lost, then repeated)"}

// promise runs f once on a new database.
func (r *runner) promise(t *testing.T, name string, f func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { f(r.world(t, plain)) })
}

// write runs f, which is about a write made through world.do, in all three forms.
func (r *runner) write(t *testing.T, name string, f func(w *world)) {
	t.Helper()
	for form, suffix := range formNames {
		t.Run(name+suffix, func(t *testing.T) { f(r.world(t, formOf(form))) })
	}
}

func formOf(n int) form { return form(n) }

func (r *runner) world(t *testing.T, f form) *world {
	c := &Clock{now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	return &world{T: t, form: f, clock: c, h: r.build(t, c), ctx: t.Context()}
}

// world is one subtest: a database, its clock, and what was opened on it.
type world struct {
	*testing.T
	form  form
	clock *Clock
	h     Harness
	s     Store // the node that acts, opened by node or sole
	ctx   context.Context
}

// node opens the database as the node that acts.
func (w *world) node() Store {
	w.s = w.h.Open()
	return w.s
}

// do makes the write that the subtest is about, in its form. call is made again
// after a failure; what it returned last is returned.
func (w *world) do(call func() error) error {
	w.Helper()
	if w.form != plain {
		w.h.Fail(w.s, w.form == persisted)
		if err := call(); err == nil {
			w.Fatal("got no error from a commit that failed, want one")
		}
	}
	return call()
}

// must ends the subtest on an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// want compares.
func want[V comparable](w *world, what string, got, wanted V) {
	w.Helper()
	if got != wanted {
		w.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// put makes an enabled installation.
func (w *world) put(id string, change ...func(*admin.Installation)) admin.Installation {
	w.Helper()
	i := admin.Installation{ID: id, Type: "fake", Enabled: true, Source: "api"}
	for _, c := range change {
		c(&i)
	}
	out, err := w.s.PutInstallation(w.ctx, i, 0)
	w.must(err)
	return out
}

func via(id string) func(*admin.Installation) {
	return func(i *admin.Installation) { i.Via = id }
}

const ttl = 30 * time.Second

// open opens a session on s.
func (w *world) open(s Store, id string) {
	w.Helper()
	_, err := s.OpenSession(w.ctx, request(id))
	w.must(err)
}

func request(id string) engine.SessionRequest {
	return engine.SessionRequest{ID: id, Instance: "instance of " + id, Host: "boot-1/1", TTL: ttl, Weight: 1, Name: "node of " + id, Version: "1"}
}

// claim claims on s and returns the grants by id.
func (w *world) claim(s Store, session string, ids ...string) map[string]engine.Grant {
	w.Helper()
	grants, err := s.Claim(w.ctx, session, ids)
	w.must(err)
	byID := map[string]engine.Grant{}
	for _, g := range grants {
		byID[g.ID] = g
	}
	want(w, "grants of one id", len(grants), len(byID))
	return byID
}

// hold makes an installation, opens the session "a" on the acting node and holds
// the lease with a term running.
func (w *world) hold(id string) channel.Term {
	w.Helper()
	w.put(id)
	w.open(w.s, "a")
	return w.begin(w.s, "a", id)
}

// begin claims a lease on s and begins a term.
func (w *world) begin(s Store, session, id string) channel.Term {
	w.Helper()
	g, ok := w.claim(s, session, id)[id]
	if !ok {
		w.Fatalf("claim of %s by %s: got no grant, want one", id, session)
	}
	t := channel.Term{Installation: id, Owner: session, Epoch: g.Epoch}
	run, _, err := s.BeginTerm(w.ctx, t, "bot")
	w.must(err)
	t.Run = run
	return t
}

// heard is an event with a body that tells it from others.
func heard(id string, targets ...string) engine.Heard {
	return engine.Heard{
		Event: channel.Event{
			ID: id, Type: "message", Time: time.UnixMilli(1_700_000_000_000), Thread: "thread", Conversation: channel.Ref{ID: "conversation"},
		},
		Body: []byte(`{"id":"` + id + `"}`), Targets: targets,
	}
}

// batch is a request of events with these ids for the target "app".
func batch(t channel.Term, ids ...string) engine.AcceptRequest {
	r := engine.AcceptRequest{Term: t, Identity: "bot"}
	for _, id := range ids {
		r.Events = append(r.Events, heard(id, "app"))
	}
	return r
}

// accept stores a batch.
func (w *world) accept(t channel.Term, ids ...string) engine.Accepted {
	w.Helper()
	got, err := w.s.Accept(w.ctx, batch(t, ids...))
	w.must(err)
	return got
}

// stored returns the platform ids of an installation's events, oldest first.
func (w *world) stored(s Store, installation string) []string {
	w.Helper()
	events, err := s.Events(w.ctx, admin.EventQuery{Installation: installation, Limit: 500})
	w.must(err)
	ids := []string{}
	for i := range events {
		ids = append(ids, events[len(events)-1-i].PlatformID)
	}
	return ids
}

// pending returns what waits under a lease.
func (w *world) pending(s Store, lease string) []delivery.Item {
	w.Helper()
	items, err := s.Pending(w.ctx, lease, 0, "", 1000)
	w.must(err)
	return items
}

// cursor returns the stored position, by beginning a term that nobody uses.
func (w *world) cursor(t channel.Term, identity string) ([]byte, channel.Term) {
	w.Helper()
	run, cursor, err := w.s.BeginTerm(w.ctx, t, identity)
	w.must(err)
	t.Run = run
	return cursor, t
}

// snapshot lists afresh.
func (w *world) snapshot(s Store) engine.Snapshot {
	w.Helper()
	snap, err := s.List(w.ctx, 0)
	w.must(err)
	if snap.Unchanged {
		w.Fatal("got an unchanged list for version 0, want all of it")
	}
	return snap
}

func (w *world) leaseOf(s Store, id string) engine.Lease {
	w.Helper()
	for _, l := range w.snapshot(s).Leases {
		if l.ID == id {
			return l
		}
	}
	w.Fatalf("got no lease %s in the list, want one", id)
	return engine.Lease{}
}

// mark stores one outcome and returns the answer to it.
func (w *world) mark(s Store, m delivery.Mark) error {
	w.Helper()
	answers, err := s.Mark(w.ctx, []delivery.Mark{m})
	w.must(err)
	want(w, "answers", len(answers), 1)
	return answers[0]
}

func delivered(t channel.Term, seq int64) delivery.Mark {
	return delivery.Mark{Term: t, Seq: seq, Target: "app", State: delivery.Delivered, Count: true}
}
