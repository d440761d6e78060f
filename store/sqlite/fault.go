package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"leasehold/internal/fault"
)

// errClosed is what a call gets once the store is closing.
var errClosed = fault.Errorf(fault.Temporary, "the store is closed")

// code returns the primary and the extended result code of err; zeros when it is
// not SQLite's.
func code(err error) (primary, extended int) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff, e.Code()
	}
	return 0, 0
}

// dataError reports whether err is about the values of one statement, so that
// the rest of its transaction may go on.
func dataError(err error) bool {
	switch p, _ := code(err); p {
	case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH:
		return true
	default:
		return false
	}
}

// classify gives what SQLite said about the database at path its kind and ends
// it with the next step. Errors that have a kind, and those that are not
// SQLite's, stay as they are.
func classify(path string, err error) error {
	primary, extended := code(err)
	if err == nil || primary == 0 || fault.Of(err) != fault.Internal {
		return err
	}
	switch primary {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Errorf(fault.Busy, "another program holds a lock on %s: %w; find it with: fuser %s", path, err, path)
	case sqlite3.SQLITE_FULL:
		return fullError(path, err)
	case sqlite3.SQLITE_IOERR:
		// The index of the log grows by a file operation of its own, and a page of it
		// that has no room on the disk faults when it is touched.
		if extended == sqlite3.SQLITE_IOERR_SHMSIZE || extended == sqlite3.SQLITE_IOERR_IN_PAGE {
			if free, freeErr := diskFree(path); freeErr == nil && free < 1<<20 {
				return fullError(path, err)
			}
		}
		return fault.Errorf(fault.ReadOnly, "the disk under %s fails: %w; look at the system's log and run a file system check", path, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fault.Errorf(fault.ReadOnly, "%s cannot be written: %w; check the owner of the file and of its folder, and that the file system is mounted read-write", path, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return corruptError(path, err)
	case sqlite3.SQLITE_TOOBIG:
		return fault.Errorf(fault.Invalid, "a value is larger than a database takes: %w", err)
	default:
		return fault.Wrap(fault.Internal, err)
	}
}

func fullError(path string, err error) error {
	return fault.Errorf(fault.Full, "the disk under %s is full: %w; free some space, nothing else is needed", path, err)
}

func corruptError(path string, err error) error {
	return fault.Errorf(fault.Corrupt,
		"the database %s is damaged: %w; nothing was changed. Stop the program and restore a backup, which moves the damaged files aside: leasehold restore --replace FILE", path, err)
}

func goneError(path string) error {
	return fault.Errorf(fault.Gone, "%s was removed or replaced while it was open: what is written now is lost; stop the program, put the file back and start it again", path)
}

// failed wraps err with what was being done.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
