package app

import (
	"path/filepath"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/loop"
	"leasehold/store/sqlite"
)

// idleHolder holds nothing: there are no installations.
type idleHolder struct{ engine.Holder }

func TestTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leasehold.db")
	types, err := channel.NewTypes(nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name string) *node {
		s, err := sqlite.Shared(t.Context(), path, sqlite.Options{ReserveBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		n := &node{store: s, name: name}
		if n.supervisor, err = engine.New(s, types, idleHolder{}, engine.Options{Instance: name, Host: name, Name: name}); err != nil {
			t.Fatal(err)
		}
		running := start(t.Context(), n.supervisor.Run)
		t.Cleanup(func() {
			if err := running.stop(); err != nil {
				t.Errorf("stop %s: %v", name, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close the store of %s: %v", name, err)
			}
		})
		return n
	}
	a, b := begin("a"), begin("b")
	turn := func(n *node, node string, mine bool) {
		t.Helper()
		h, got, err := n.turn(t.Context(), "sweeper")
		if err != nil || h.Node != node || got != mine {
			t.Errorf("asked by %s: got %q, ours %v (%v), want %q and %v", n.name, h.Node, got, err, node, mine)
		}
	}
	turn(a, "a", true)
	turn(b, "a", false)
	turn(a, "a", true)

	if err := a.supervisor.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for !a.supervisor.Status().Drained {
		if err := loop.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	turn(a, "", false) // which gives it up
	turn(a, "", false)
	turn(b, "b", true)
	if err := a.supervisor.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn(a, "b", false)
}
