//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Try locks f, which may be a folder here, and does not wait: ErrLocked, somebody
// else has it.
func Try(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
