package durable_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"leasehold/internal/durable"
)

func TestSyncDir(t *testing.T) {
	t.Run("a folder is synced, and one that is not there is an error", func(t *testing.T) {
		if err := durable.SyncDir(t.TempDir()); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if err := durable.SyncDir(filepath.Join(t.TempDir(), "none")); err == nil && runtime.GOOS != "windows" {
			t.Error("got no error for a folder that is not there, want one")
		}
	})
}
