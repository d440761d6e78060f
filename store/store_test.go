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

	t.Run("another database is not in this version, and its url is not repeated", func(t *testing.T) {
		for _, url := range []string{"postgres://u:hunter2@host/db", "postgresql://u:hunter2@host/db"} {
			_, err := store.Open(t.Context(), url, store.Options{})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "not in this version") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want that it is not in this version", err)
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
