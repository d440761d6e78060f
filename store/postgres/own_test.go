package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/internal/fault"
	"leasehold/internal/identity"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

func TestOwnDatabase(t *testing.T) {
	server := pgtest.Shared(t)
	dir := t.TempDir()
	mine := postgres.Options{DataDir: dir}
	url := server.Database(t)
	once := func(t *testing.T, url string, o postgres.Options) {
		t.Helper()
		s, err := postgres.Open(t.Context(), url, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	once(t, url, mine)
	first := remembered(t, dir)

	t.Run("an empty one in its place is refused, and left empty", func(t *testing.T) {
		empty := server.Database(t)
		refused(t, empty, mine, fault.Invalid, "is empty", first.Store, "--new-store")
		var there bool
		pgtest.Get(t, empty, "SELECT to_regclass('installation') IS NOT NULL", &there)
		if there {
			t.Error("got a schema in the database that was refused, want none")
		}
	})

	t.Run("so is another one, to read, too", func(t *testing.T) {
		other := server.Database(t)
		once(t, other, postgres.Options{})
		for _, existing := range []bool{false, true} {
			refused(t, other, postgres.Options{DataDir: dir, Existing: existing}, fault.Invalid, "another one", first.Store, "--new-store")
		}
		once(t, url, mine)
		if got := remembered(t, dir); got != first {
			t.Errorf("got %+v remembered, want %+v still", got, first)
		}
	})

	t.Run("a person may go on with another one", func(t *testing.T) {
		other := server.Database(t)
		o := mine
		o.NewStore = true
		once(t, other, o)
		if got := remembered(t, dir); got.Store == first.Store {
			t.Error("got the first store remembered, want the other one")
		}
		once(t, other, mine)
		once(t, url, o) // and back
	})

	t.Run("a node that had a file of its own moves to one", func(t *testing.T) {
		own := filepath.Join(dir, "own")
		mkdir(t, own)
		id, err := identity.Load(own)
		if err != nil {
			t.Fatal(err)
		}
		if err := id.SetStore("of a file", ""); err != nil {
			t.Fatal(err)
		}
		once(t, url, postgres.Options{DataDir: own})
	})

	t.Run("nodes agree on what keys their fingerprints, and no other database has it", func(t *testing.T) {
		second := t.TempDir()
		once(t, url, postgres.Options{DataDir: second})
		once(t, url, mine)
		a, b := remembered(t, dir), remembered(t, second)
		if a.SharedKey != b.SharedKey || len(a.SharedKey) < 32 || a.Key == b.Key {
			t.Errorf("got the keys %q and %q, want one that is long", a.SharedKey, b.SharedKey)
		}
		if strings.Contains(a.SharedKey, a.Store) {
			t.Error("got a key made of the store's id, which is shown to people")
		}
		other := t.TempDir()
		once(t, server.Database(t), postgres.Options{DataDir: other})
		if got := remembered(t, other); got.SharedKey == a.SharedKey {
			t.Error("got the same key for two databases, want one each")
		}
	})
}

// remembered is the identity that a folder holds.
func remembered(t *testing.T, dir string) identity.Identity {
	t.Helper()
	id, err := identity.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return *id
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
