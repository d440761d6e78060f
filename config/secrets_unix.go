//go:build unix

package config

import (
	"io/fs"
	"slices"
	"syscall"
)

// ownGroup reports whether the file's group is one of gids.
func ownGroup(info fs.FileInfo, gids []int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && slices.Contains(gids, int(st.Gid))
}
