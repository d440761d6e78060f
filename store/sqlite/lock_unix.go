//go:build darwin || freebsd

package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"leasehold/internal/fault"
)

// tryLock locks a file beside the database: SQLite's own locks are of the
// process here, and closing any descriptor of the database would drop them. The
// file is never removed; its inode is looked at again every tick.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// refuseTwoNames refuses a hard link, whose two names have two lock files.
func refuseTwoNames(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return fault.Errorf(fault.Invalid, "the database %s has %d names (hard links): remove the others, or copy it", path, st.Nlink)
	}
	return nil
}

// refuseNetwork knows the magic numbers of Linux only.
func refuseNetwork(string) error { return nil }
