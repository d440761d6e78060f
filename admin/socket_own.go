package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
)

// ownSocket is a listener that takes its file away when it is closed, and nobody
// else's: a process that ends late finds its successor's socket at the same path.
type ownSocket struct {
	net.Listener
	path  string
	file  fs.FileInfo // as it was made
	close func() error
}

// own makes l the owner of the file at path, which it has just made. It closes l
// when it cannot.
func own(l net.Listener, path string) (net.Listener, error) {
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	file, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look at the local socket: %w", err), l.Close())
	}
	o := &ownSocket{Listener: l, path: path, file: file}
	o.close = sync.OnceValue(func() error { return errors.Join(o.unlink(), l.Close()) })
	return o, nil
}

// Close may be called again, which does nothing more.
func (o *ownSocket) Close() error { return o.close() }

// unlink comes before the listener is closed: until then the system does not give
// the number of its file to another one.
func (o *ownSocket) unlink() error {
	there, err := os.Lstat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the local socket: %w", err)
	case !os.SameFile(there, o.file):
		return nil
	}
	if err := os.Remove(o.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the local socket: %w", err)
	}
	return nil
}
