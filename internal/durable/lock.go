package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/filelock"
	"leasehold/internal/loop"
)

const (
	// lockWait is how long Lock waits: each holder needs milliseconds, so that this is
	// a hundred of them on a slow card, or one that is stopped.
	lockWait = 30 * time.Second
	lockPoll = 10 * time.Millisecond
)

// Lock keeps others who call it from the file at path, until unlock, so that each
// reads what the one before wrote. A symbolic link is followed. It waits for its
// turn, and removes what a killed Replace of the file left. fault.Busy: the turn
// does not come; fault.ReadOnly: the folder cannot be used.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	path = followed(path)
	f, err := openLock(path)
	if err != nil {
		return nil, fault.Errorf(fault.ReadOnly, "lock %s: %w; check the owner of its folder", path, err)
	}
	for end := time.Now().Add(lockWait); ; {
		err := filelock.Try(f)
		switch {
		case err == nil:
			Tidy(path)
			return f.Close, nil
		case !errors.Is(err, filelock.ErrLocked):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case time.Now().After(end):
			return nil, errors.Join(fault.Errorf(fault.Busy, "another process changes %s: end it, or try again", path), f.Close())
		}
		if err := loop.Sleep(ctx, lockPoll); err != nil {
			return nil, errors.Join(fmt.Errorf("wait for the lock of %s: %w", path, err), f.Close())
		}
	}
}

// Tidy removes what killed calls of Replace left of the file at path, as far as it
// can: it is in nobody's way, but what is in it may be a secret. The caller is the only
// one who replaces the file. A symbolic link is followed.
func Tidy(path string) {
	path = followed(path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), tempPrefix(path))
		if ours && number != "" && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}
