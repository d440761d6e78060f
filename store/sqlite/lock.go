package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

// Owner is the process that holds a database, as it wrote itself down.
type Owner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Name    string    `json:"name,omitempty"` // of its node
	Started time.Time `json:"started"`
}

// String says who it is in a few words; without a PID it did not say.
func (o Owner) String() string {
	if o.PID == 0 {
		return "another process"
	}
	who := fmt.Sprintf("process %d on %s", o.PID, o.Host)
	if o.Name != "" {
		who += fmt.Sprintf(" (node %s)", o.Name)
	}
	return who + ", running since " + o.Started.UTC().Format(time.RFC3339)
}

// LockedError says who holds a database. Its kind is fault.Busy.
type LockedError struct {
	Path  string
	Owner Owner // PID 0: it did not say
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s: stop it first, or let this one wait for it", e.Path, e.Owner)
}

// errLocked is what a system's tryLock answers when somebody else has the lock.
var errLocked = errors.New("locked")

// fileLock is the lock that makes this process the only one to write a database.
// The operating system drops it with the process.
type fileLock struct {
	f    *os.File    // the locked file; kept open
	info os.FileInfo // of that file when it was locked
	path string      // of the database
}

// lockDatabase takes the lock of the database at path, whose file exists, and
// writes down who has it. fault.Busy with a *LockedError: somebody else does.
func lockDatabase(path, name string, now time.Time) (*fileLock, error) {
	f, err := tryLock(path)
	if errors.Is(err, errLocked) {
		return nil, fault.Wrap(fault.Busy, &LockedError{Path: path, Owner: readOwner(path)})
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	l := &fileLock{f: f, path: path}
	if l.info, err = f.Stat(); err == nil {
		err = l.check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	l.writeOwner(name, now)
	return l, nil
}

// check reports whether the path still leads to the file that is locked. A lock
// on a file that was removed or replaced excludes nobody.
func (l *fileLock) check() error {
	info, err := os.Lstat(l.f.Name())
	if err != nil || !os.SameFile(info, l.info) {
		return goneError(l.f.Name())
	}
	return nil
}

func (l *fileLock) writeOwner(name string, now time.Time) {
	host, _ := os.Hostname() // unknown is shown as such
	b, err := json.Marshal(Owner{PID: os.Getpid(), Host: host, Name: name, Started: now.UTC()})
	if err == nil {
		// Words for people: a full disk must not keep the program from starting.
		_ = os.WriteFile(ownerPath(l.path), b, 0o600)
	}
}

// release gives the lock up. The owner's file goes first: it is ours until then.
func (l *fileLock) release() error {
	_ = os.Remove(ownerPath(l.path))
	return l.f.Close()
}

func readOwner(path string) (o Owner) {
	if b, err := os.ReadFile(ownerPath(path)); err == nil {
		_ = json.Unmarshal(b, &o) // half-written: unknown
	}
	return o
}

func ownerPath(path string) string { return path + ".owner" }

// WaitForLock returns nil when the database at path is not locked by anybody at
// that moment, looking every poll, or ctx's error. The lock is not taken: call
// Open, which may still find somebody faster. It opens the database's own file
// for a moment, which is harmless beside an open OpenReader on Linux only;
// elsewhere the lock is a file of its own.
func WaitForLock(ctx context.Context, path string, poll time.Duration) error {
	for {
		f, err := tryLock(path)
		switch {
		case err == nil:
			return f.Close()
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, errLocked):
			return fmt.Errorf("wait for the lock of %s: %w", path, err)
		}
		if err := loop.Sleep(ctx, poll); err != nil {
			return fmt.Errorf("wait for the lock of %s: %w", path, err)
		}
	}
}

// resolve makes path absolute and refuses what would give the database two
// names, and so two locks: a symbolic link, a hard link, a mount of the single
// file. Network file systems are refused unless forced.
func resolve(path string, forceNetwork bool) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fault.Errorf(fault.ReadOnly, "the folder of the database %s cannot be used: %w; create it, or set node.data_dir", abs, err)
	}
	abs = filepath.Join(dir, filepath.Base(abs))
	if !forceNetwork {
		if err := refuseNetwork(dir); err != nil {
			return "", err
		}
	}
	info, err := os.Lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return abs, nil
	case err != nil:
		return "", fault.Errorf(fault.ReadOnly, "look at the database: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return "", fault.Errorf(fault.Invalid, "the database %s is a symbolic link, which lets two processes lock two names of it: name the file itself", abs)
	case !info.Mode().IsRegular():
		return "", fault.Errorf(fault.Invalid, "the database %s is not a file: name another one in store.url", abs)
	}
	return abs, refuseTwoNames(abs, info)
}
