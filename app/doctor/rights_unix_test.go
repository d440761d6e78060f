//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"testing"

	needs "leasehold/internal/need"
)

func TestCheckRights(t *testing.T) {
	dir := t.TempDir()
	look := func(t *testing.T, mode os.FileMode) []Finding {
		t.Helper()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return checkDataDir(dir)
	}
	t.Run("what others may do is told with the command that ends it", func(t *testing.T) {
		found(t, only(t, look(t, 0o777)), Fail, "may write", "chmod 700 "+dir)
		found(t, only(t, look(t, 0o755)), Warn, "may read", "chmod 700 "+dir)
		found(t, only(t, look(t, 0o700)), OK)
	})
	t.Run("a file of somebody else's is told, as root leaves one", func(t *testing.T) {
		needs.Root(t)
		file := filepath.Join(dir, "leasehold.db")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		found(t, only(t, look(t, 0o700)), Fail, file, "12345", "chown -R")
	})
}

func TestOpenFiles(t *testing.T) {
	t.Run("this process's limit is the same by either way", func(t *testing.T) {
		own, seen := openFiles(), openFilesOf(os.Getpid())
		if own <= 0 || seen != 0 && seen != own {
			t.Errorf("got %d and %d, want one limit", own, seen)
		}
		if got := openFilesOf(-1); got != 0 {
			t.Errorf("of no process: got %d, want none", got)
		}
	})
}
