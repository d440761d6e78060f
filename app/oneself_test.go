package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/app/backlog"
	"leasehold/app/herald"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/clockgate"
	"leasehold/internal/eventid"
	"leasehold/store"
	"leasehold/store/sqlite"
)

// TestWrongClock runs a node's pieces over a real store on a box that woke up a
// month ago: what a battery would have told it, the network tells it in the middle.
func TestWrongClock(t *testing.T) {
	build := time.Now()
	var wrong atomic.Int64 // how far the wall clock is behind
	wall := func() time.Time { return time.Now().Add(-time.Duration(wrong.Load())) }
	wrong.Store(int64(30 * 24 * time.Hour))

	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1, Now: wall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	began := time.Now()
	quiet := slog.New(slog.DiscardHandler)
	n := &node{store: s, log: quiet, loops: new(delivery.Breaker), drops: backlog.NewDrops(func(int64) {}, quiet), herald: herald.New(func(s string) string { return s }, quiet), clock: clockgate.New(clockgate.Options{
		Built: build, Wall: wall, Up: func() (time.Duration, bool) { return time.Hour + time.Since(began), true }, Unsynced: func() bool { return false },
	})}
	if n.dispatcher, err = delivery.New(s, []delivery.Target{{Name: "app", Kind: "log"}}, delivery.Options{Clock: n.believed()}); err != nil {
		t.Fatal(err)
	}
	types, err := channel.NewTypes(func(string, string) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	if n.supervisor, err = engine.New(s, types, n.dispatcher, engine.Options{Instance: "me"}); err != nil {
		t.Fatal(err)
	}

	hear(t, s)
	n.reloader = &reloader{} // of a program without files
	tasks, err := chores(fixed(config.Default()), s, n, quiet)
	if err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := tasks.Once(t.Context(), "sweeper"); err != nil {
			t.Errorf("sweep: %v", err)
		}
	}
	there := func() bool {
		_, err := s.Event(t.Context(), eventid.Event(1))
		return err == nil
	}

	trouble := n.Troubles()
	if len(trouble) != 1 || trouble[0].What != "clock" || trouble[0].State != "held" || !strings.Contains(trouble[0].Reason, "before this program was built") || trouble[0].NextStep == "" {
		t.Errorf("got %+v, want the clock with its reason and a next step", trouble)
	}
	api := admin.New(admin.Options{Store: s, Types: types, Mode: admin.Running, Process: n, Tasks: tasks})
	if o, err := api.Overview(t.Context()); err != nil || o.Well || !slices.ContainsFunc(o.Trouble, func(x admin.Trouble) bool { return x.What == "clock" }) {
		t.Errorf("got %+v, %v, want a box that is not well for its clock", o.Trouble, err)
	}

	// Ahead, so far that the event is past its retention, and still before the build.
	wrong.Store(int64(20 * 24 * time.Hour))
	sweep()
	if !there() {
		t.Error("while the clock is held: got the event swept, want it kept")
	}

	wrong.Store(0)
	if got := n.Troubles(); len(got) != 0 {
		t.Errorf("got %+v, want none once the clock is right", got)
	}
	sweep()
	if there() {
		t.Error("once the clock is right: got the event kept, want it swept")
	}

	// What waited over the leap has not waited for a month.
	if got := time.Since(n.clock.Heard(began.Add(-30 * 24 * time.Hour))); got > time.Hour {
		t.Errorf("got an age of %v for what was just heard, want no more than the test took", got)
	}
}

// hear stores one event that goes nowhere, under a lease that somebody holds.
func hear(t *testing.T, s *sqlite.Store) {
	t.Helper()
	row := admin.Installation{ID: "acme", Type: "x", Config: json.RawMessage("{}"), Enabled: true, Source: admin.SourceAPI, Fingerprint: "f"}
	if _, err := s.PutInstallation(t.Context(), row, 0); err != nil {
		t.Fatal(err)
	}
	session, err := s.OpenSession(t.Context(), engine.SessionRequest{ID: "session", Instance: "me", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	grants, err := s.Claim(t.Context(), session.ID, []string{"acme"})
	if err != nil || len(grants) != 1 {
		t.Fatalf("claim: got %v, %v", grants, err)
	}
	term := channel.Term{Installation: "acme", Owner: session.ID, Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(t.Context(), term, ""); err != nil {
		t.Fatal(err)
	}
	event := engine.Heard{Event: channel.Event{ID: "1", Type: "message"}, Body: []byte(`{"id":"1","type":"message"}`)}
	if _, err := s.Accept(t.Context(), engine.AcceptRequest{Term: term, Events: []engine.Heard{event}}); err != nil {
		t.Fatal(err)
	}
}

// alone is a store that no other process shares.
type alone struct{ store.Store }

func (alone) Sole() bool { return true }

func TestNodeTells(t *testing.T) {
	t.Run("a task that goes on failing and a clock that is wrong are told, and that nobody heard the ping is not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			quiet := slog.New(slog.DiscardHandler)
			n := &node{herald: herald.New(func(s string) string { return s }, quiet), log: quiet, store: alone{}}
			var told []string
			n.herald.Announce = func(a delivery.Announcement) { told = append(told, a.Text) }
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- n.herald.Run(ctx) }()
			n.taskEnded("sweeper", errors.New("disk"))
			n.taskEnded(pingTask, errors.New("no network"))
			n.clockChanged("it shows 1970")
			time.Sleep(time.Hour)
			n.taskEnded("sweeper", nil)
			n.clockChanged("")
			synctest.Wait()
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("got %v, want a clean end", err)
			}
			slices.Sort(told)
			want := []string{
				"clock is held (it shows 1970): " + clockStep, "clock is ok",
				"task sweeper is failing (disk): correct the cause, then leasehold tasks run sweeper", "task sweeper is ok",
			}
			if !slices.Equal(told, want) {
				t.Errorf("got %q, want %q", told, want)
			}
		})
	})
}
