package sqlite_test

import (
	"path/filepath"
	"testing"

	"leasehold/store/sqlite"
	"leasehold/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, c *storetest.Clock) storetest.Harness {
		path := filepath.Join(t.TempDir(), "leasehold.db")
		o := sqlite.Options{Now: c.Now, ReserveBytes: -1}
		opened := func(s *sqlite.Store, err error) storetest.Store {
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
		return storetest.Harness{
			Open:     func() storetest.Store { return opened(sqlite.Shared(t.Context(), path, o)) },
			OpenSole: func() storetest.Store { return opened(sqlite.Open(t.Context(), path, o)) },
			Fail:     func(s storetest.Store, persisted bool) { sqlite.FailNext(s.(*sqlite.Store), persisted) },
		}
	})
}
