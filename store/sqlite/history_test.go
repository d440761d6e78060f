package sqlite_test

import (
	"path/filepath"
	"testing"

	"leasehold/store/sqlite"
	"leasehold/store/storetest"
	"leasehold/store/storetest/history"
)

// TestHistories is about several stores on one file, each with a writer of its own.
func TestHistories(t *testing.T) {
	build := func(t *testing.T) history.Harness {
		path := filepath.Join(t.TempDir(), "leasehold.db")
		return history.Harness{
			Open: func() storetest.Store { return shared(t, path) },
			Fail: func(s storetest.Store, persisted bool) { sqlite.FailNext(s.(*sqlite.Store), persisted) },
		}
	}
	history.Run(t, build)
	history.RunFaulty(t, build)
}
