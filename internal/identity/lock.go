package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"leasehold/internal/fault"
	"leasehold/internal/filelock"
)

const lockName = "instance.lock"

// Lock makes this process the only one that uses the identity kept in dir, until
// unlock; the operating system gives the lock up with the process. A session that
// stands under the identity is then a dead process's. fault.Invalid: another
// process has it. The file stays: who waits for a lock on one that was removed
// waits for nothing.
func Lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, lockName)
	f, err := tryLock(path)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return nil, fault.Errorf(fault.Invalid, "another process uses the data folder %s: stop it, or give this one a folder of its own (node.data_dir)", dir)
	case err != nil:
		return nil, fault.Wrap(fault.ReadOnly, fmt.Errorf("lock the data folder: %w; check the owner of %s", err, dir))
	}
	return f.Close, nil
}

// tryLock opens the file of the lock and locks it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Try(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
