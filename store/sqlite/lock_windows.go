package sqlite

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file beside the database; the file is never removed.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if err != nil {
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A file that is open cannot be replaced here; hard links are not looked for.
func refuseTwoNames(string, fs.FileInfo) error { return nil }

// Network drives are not told apart yet; SQLite's own locks guard them.
func refuseNetwork(string) error { return nil }
