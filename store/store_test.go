package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/internal/fault"
	"leasehold/store"
)

func TestOpen(t *testing.T) {
	t.Run("a sqlite url names a file", func(t *testing.T) {
		for _, form := range []string{"sqlite:", "sqlite://"} {
			path := filepath.Join(t.TempDir(), "leasehold.db")
			s, err := store.Open(t.Context(), form+path, store.Options{DataDir: filepath.Dir(path)})
			if err != nil {
				t.Fatal(err)
			}
			if !s.Sole() {
				t.Error("got a shared store, want a sole owner")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("a postgres url names a server, and its password is not repeated", func(t *testing.T) {
		for _, url := range []string{"postgres://u:hunter2@127.0.0.1:1/db", "postgresql://u:hunter2@127.0.0.1:1/db"} {
			if !store.Shared(url) {
				t.Errorf("%s: got a database of one process, want a shared one", url)
			}
			_, err := store.Open(t.Context(), url, store.Options{})
			if !fault.Is(err, fault.Temporary) || !strings.Contains(err.Error(), "db on 127.0.0.1") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want that db on 127.0.0.1 does not answer", err)
			}
			if got := store.Shown(url); strings.Contains(got, "hunter2") || !strings.Contains(got, "127.0.0.1:1/db") {
				t.Errorf("got %s, want the url without its password", got)
			}
		}
	})

	t.Run("a url that names no database says what does", func(t *testing.T) {
		for _, url := range []string{"", "leasehold.db", "sqlite:", "sqlite://", "mysql://secret@host"} {
			_, err := store.Open(t.Context(), url, store.Options{})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "sqlite:leasehold.db") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: got %v, want an example of one that does", url, err)
			}
		}
	})
}
