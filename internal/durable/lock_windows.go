package durable

import (
	"os"
	"path/filepath"
)

// openLock opens a file beside path, since folders cannot be locked here. The file
// stays: who waits for a lock on one that was removed waits for nothing.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
}
