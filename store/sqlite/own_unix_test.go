//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"leasehold/internal/need"
)

func TestRestoreAsRoot(t *testing.T) {
	t.Run("what root restores is the folder's owner's, who runs the service", func(t *testing.T) {
		need.Root(t)
		from, dir := backedUp(t), t.TempDir()
		must(t, os.Chown(dir, 12345, 12346))
		to := filepath.Join(dir, "leasehold.db")
		_, err := Restore(t.Context(), from, to, RestoreOptions{})
		must(t, err)
		var st syscall.Stat_t
		must(t, syscall.Stat(to, &st))
		want(t, "user", st.Uid, uint32(12345))
		want(t, "group", st.Gid, uint32(12346))
	})
}
