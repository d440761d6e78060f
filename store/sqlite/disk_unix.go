//go:build linux || darwin || freebsd

package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errNoSpace is what a write to a full disk answers.
const errNoSpace = unix.ENOSPC

// diskFree returns the bytes that an ordinary user may still write on the file
// system of path's folder.
func diskFree(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // their types differ by system
}

// diskSize returns the bytes of that file system in all.
func diskSize(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, err
	}
	return int64(st.Blocks) * int64(st.Bsize), nil //nolint:unconvert // their types differ by system
}
