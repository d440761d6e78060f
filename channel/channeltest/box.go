package channeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/loop"
	"leasehold/store/sqlite"
)

const (
	// account is who the installation is on the platform, installation its id.
	account      = "a"
	installation = "acme"
	// planted is the credential. It must never be seen outside the platform.
	planted = "planted-credential-7Q2w9Zx4"
)

// box is one machine with a store, a platform within reach, and a node.
type box struct {
	*testing.T
	where    string // not empty: one of several boxes of a test, each on its own goroutine
	h        Harness
	dir      string
	bubble   bool // time is simulated
	faults   Faults
	dial     Dial // nil = real
	address  string
	secret   string // what the reference resolves to
	platform Platform
	steps    *stepWatch
	logs     *logBuffer
	db       *sqlite.Store
	store    *brokenStore
	holder   holder
	node     *node
}

func newBox(t *testing.T, h Harness, dir string) *box {
	t.Helper()
	b := &box{T: t, h: h, dir: dir, logs: &logBuffer{}, steps: &stepWatch{}, secret: planted}
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "leasehold.db"), sqlite.Options{ReserveBytes: -1, Now: time.Now})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	b.db, b.store = db, &brokenStore{Store: db}
	return b
}

// Errorf says where it was.
func (b *box) Errorf(format string, args ...any) {
	b.Helper()
	b.T.Errorf(b.where+format, args...)
}

// Fatalf ends this box, and with it the test when it is its only one.
func (b *box) Fatalf(format string, args ...any) {
	b.Helper()
	b.Errorf(format, args...)
	if b.where == "" {
		b.FailNow()
	}
	runtime.Goexit() // FailNow is for the test's own goroutine
}

// Fatal is Fatalf of one error.
func (b *box) Fatal(err error) {
	b.Helper()
	b.Fatalf("%v", err)
}

func (b *box) open(ln net.Listener) { b.platform = b.h.Start(ln, planted, b.steps.saw) }

// config is the installation's, for an account.
func (b *box) config(account string) json.RawMessage {
	if b.platform == nil {
		return b.h.Config
	}
	return b.platform.Config(b.address, account, !b.bubble)
}

func (b *box) resolve(_, name string) (string, error) {
	if name != "TOKEN" {
		return "", fmt.Errorf("environment variable %s is not set", name)
	}
	return b.secret, nil
}

// install writes an installation into the store.
func (b *box) install(id, account string) error {
	b.Helper()
	cfg, err := b.h.Spec.Decode(b.config(account), b.resolve)
	if err != nil {
		b.Fatalf("the harness's config: %v", err)
	}
	row, err := b.db.Installation(b.Context(), id)
	if err == nil {
		b.Fatalf("installation %s exists", id)
	}
	row.ID, row.Type, row.Enabled, row.Source = id, b.h.Spec.Name, true, "api"
	row.Config, row.Identity, row.Fingerprint = b.config(account), cfg.Identity(), cfg.Fingerprint([]byte("key"))
	_, err = b.db.PutInstallation(b.Context(), row, 0)
	return err
}

// node is one Supervisor on the box.
type node struct {
	sup   *engine.Supervisor
	clock *sleepyClock
	stop  context.CancelFunc
	done  chan error
}

// start installs the account and runs a node.
func (b *box) start() {
	b.Helper()
	if err := b.install(installation, account); err != nil {
		b.Fatalf("install: %v", err)
	}
	b.run()
}

// run runs a node on what is installed.
func (b *box) run() {
	b.Helper()
	types, err := channel.NewTypes(b.resolve, b.h.Spec)
	if err != nil {
		b.Fatal(err)
	}
	n := &node{clock: &sleepyClock{Clock: engine.GoClock()}, done: make(chan error, 1)}
	n.sup, err = engine.New(b.store, types, &b.holder, engine.Options{
		Instance: "box", Host: "box", Clock: n.clock, Connect: engine.Connect{Dial: b.dial},
		Log: slog.New(slog.NewJSONHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	n.stop = stop
	go func() { n.done <- n.sup.Run(ctx) }()
	b.node = n
}

// halt stops the node and returns how long it took.
func (b *box) halt() time.Duration {
	b.Helper()
	began := time.Now()
	b.node.stop()
	select {
	case err := <-b.node.done:
		if err != nil {
			b.Errorf("the node ended with %v, want nil", err)
		}
	case <-time.After(40 * time.Second):
		b.node = nil // it will not stop for close either
		b.Fatalf("the node did not stop\n%s", b.logs.String())
	}
	b.node = nil
	return time.Since(began)
}

// finish stops everything and looks for the secret in all that is left.
func (b *box) finish() {
	b.Helper()
	said := b.logs.String()
	if b.node != nil {
		said += fmt.Sprintf("%+v", b.node.sup.Status())
		b.halt()
		said += b.logs.String()
	}
	if b.platform != nil {
		if c := b.platform.Complaints(account); len(c) > 0 {
			b.Errorf("the platform complains: %q", c)
		}
	}
	b.close()
	if strings.Contains(said, planted) {
		b.Errorf("the secret is in a log line or a state:\n%s", said)
	}
	files, err := os.ReadDir(b.dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(b.dir, f.Name()))
		if err == nil && bytes.Contains(content, []byte(planted)) {
			b.Errorf("the secret is in %s", f.Name())
		}
	}
}

// close ends what still runs, after a failure, too: in simulated time a node that
// is left behind would run for ever.
func (b *box) close() {
	b.Helper()
	if b.node != nil {
		b.node.stop()
		if err := <-b.node.done; err != nil {
			b.Errorf("the node ended with %v, want nil", err)
		}
		b.node = nil
	}
	if b.platform != nil {
		b.faults.Resume()
		b.platform.Close()
		b.platform = nil
	}
	if b.db != nil {
		if err := b.db.Close(); err != nil {
			b.Errorf("close store: %v", err)
		}
		b.db = nil
	}
}

// link is the state of the installation.
func (b *box) link() engine.LinkStatus {
	for _, l := range b.node.sup.Status().Links {
		if l.Installation == installation {
			return l
		}
	}
	return engine.LinkStatus{}
}

func (b *box) connected() bool { return b.link().State == engine.Connected }

// within waits until ok, for at most d, and returns how long it took.
func (b *box) within(d time.Duration, what string, ok func() bool) time.Duration {
	b.Helper()
	began := time.Now()
	for {
		if b.bubble {
			synctest.Wait()
		}
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > d {
			b.Fatalf("%s: not within %s; the state is %+v\n%s", what, d, b.link(), b.logs.String())
		}
		b.pass(min(d/100+time.Millisecond, 50*time.Millisecond))
	}
}

// pass lets time go by.
func (b *box) pass(d time.Duration) {
	b.Helper()
	if err := loop.Sleep(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	if b.bubble {
		synctest.Wait()
	}
}

// kept lists the ids of the events in the store, in the order of their commits.
func (b *box) kept() []channel.Event {
	b.Helper()
	var seqs []int64
	for {
		var after int64
		if len(seqs) > 0 {
			after = seqs[len(seqs)-1]
		}
		page, err := b.db.Pending(b.Context(), installation, after, target, 1000)
		if err != nil {
			b.Fatalf("list events: %v", err)
		}
		if len(page) == 0 {
			break
		}
		for _, item := range page {
			seqs = append(seqs, item.Seq)
		}
	}
	stored, err := b.db.Payloads(b.Context(), seqs)
	if err != nil {
		b.Fatalf("read events: %v", err)
	}
	bySeq := map[int64]channel.Event{}
	for _, s := range stored {
		var e channel.Event
		if err := json.Unmarshal(s.Body, &e); err != nil {
			b.Fatalf("event %d: %v", s.Seq, err)
		}
		bySeq[s.Seq] = e
	}
	events := make([]channel.Event, 0, len(seqs))
	for _, seq := range seqs {
		events = append(events, bySeq[seq])
	}
	return events
}

// left reports whether n events wait for an acknowledgement, on a platform that
// has acknowledgements.
func (b *box) left(n int) bool { return b.h.Resumes || len(b.platform.Unacked(account)) == n }

// delivered reports whether exactly these events are in the store, once each, and
// none is left for the platform to send again.
func (b *box) delivered(ids ...string) bool {
	b.Helper()
	events := b.kept()
	if len(events) != len(ids) || !b.left(0) {
		return false
	}
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	for _, e := range events {
		if !want[e.ID] {
			return false
		}
		delete(want, e.ID)
	}
	return true
}
