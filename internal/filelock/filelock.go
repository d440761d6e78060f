// Package filelock locks an open file for this process, or for this one opening of
// it. The operating system gives the lock up with the file, and so with a process
// that is killed. It excludes those who ask for it, too, and nobody else.
package filelock

import "errors"

// ErrLocked is what Try answers when somebody else has the lock.
var ErrLocked = errors.New("locked")
