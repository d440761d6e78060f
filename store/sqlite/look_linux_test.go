package sqlite

import (
	"path/filepath"
	"testing"
)

func TestLookAtFileSystem(t *testing.T) {
	alone(t, func(t *testing.T) {
		t.Run("one in memory is told", func(t *testing.T) {
			p, err := Look(filepath.Join(tmpfs(t, "8m"), "leasehold.db"))
			must(t, err)
			want(t, "kind", p.FileSystem, "tmpfs")
			want(t, "volatile", p.Volatile, true)
			want(t, "network", p.Network, false)
			want(t, "low", p.Low(), true)
			want(t, "short", p.Short(), false)
			want(t, "nodes are counted", p.Nodes > 0, true)
		})
	})
}
