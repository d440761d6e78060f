package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/engine"
)

// openTest opens a new database of the test's own.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	if o.ReserveBytes == 0 {
		o.ReserveBytes = -1
	}
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// grant makes an installation of the id and begins a term of it.
func grant(t testing.TB, s *Store, id string) channel.Term {
	t.Helper()
	ctx := context.Background()
	if _, err := s.PutInstallation(ctx, admin.Installation{ID: id, Type: "heartbeat", Enabled: true, Source: "api"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenSession(ctx, engine.SessionRequest{ID: "session", Instance: "instance", Host: "boot/1"}); err != nil {
		t.Fatal(err)
	}
	grants, err := s.Claim(ctx, "session", []string{id})
	if err != nil || len(grants) != 1 {
		t.Fatalf("got grants %v, %v, want one", grants, err)
	}
	term := channel.Term{Installation: id, Owner: "session", Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(ctx, term, "bot"); err != nil {
		t.Fatal(err)
	}
	return term
}

func heard(id string, targets ...string) engine.Heard {
	return engine.Heard{
		Event:   channel.Event{ID: id, Type: "message", Time: time.UnixMilli(1000), Conversation: channel.Ref{ID: "c"}},
		Body:    fmt.Appendf(nil, `{"id":%q}`, id),
		Targets: targets,
	}
}

func TestSmoke(t *testing.T) {
	s := openTest(t, Options{DataDir: t.TempDir()})
	term := grant(t, s, "a")
	got, err := s.Accept(t.Context(), engine.AcceptRequest{Term: term, Events: []engine.Heard{heard("1", "app"), heard("2", "app"), heard("1", "app")}, Cursor: []byte("x")})
	if err != nil || got.Duplicates != 1 || got.LastSeq != 2 {
		t.Fatalf("got %+v, %v, want two stored", got, err)
	}
	snap, err := s.List(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", snap)
	again, err := s.List(t.Context(), snap.Version)
	if err != nil || !again.Unchanged {
		t.Fatalf("got %+v, %v, want unchanged", again, err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, err := s.Installation(t.Context(), "a")
	t.Logf("%+v %v", i, err)
}
