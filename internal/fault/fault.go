// Package fault gives errors a kind that people outside the program can act on.
//
// A kind says what is wrong in the words of an operator (the disk is full, the
// row is not there), never where in the code it happened. An HTTP status and an
// exit code are read from the kind; everything else about an error stays in its
// text. An error without a kind is Internal.
package fault

import (
	"errors"
	"fmt"
)

// Kind is what went wrong, as several packages branch on it.
type Kind int

// The kinds. Full, ReadOnly, Corrupt, Busy, Gone, Newer and Backlog speak of the store.
const (
	Internal  Kind = iota // a mistake of ours
	Invalid               // the caller's input is wrong
	NotFound              // there is no such thing
	Conflict              // it exists already, or changed meanwhile
	Denied                // the caller may not do this
	Temporary             // try again later
	Full                  // no space is left for the store
	ReadOnly              // the store cannot be written: permission, mount, medium
	Corrupt               // the store is damaged
	Busy                  // somebody else holds the store's lock
	Gone                  // the store's file was removed or replaced under us
	Newer                 // the store was written by a newer version
	Backlog               // more waits for delivery than the config allows
)

var names = [...]string{
	Internal: "internal", Invalid: "invalid", NotFound: "not_found", Conflict: "conflict", Denied: "denied",
	Temporary: "temporary", Full: "full", ReadOnly: "read_only", Corrupt: "corrupt", Busy: "busy", Gone: "gone", Newer: "newer",
	Backlog: "backlog",
}

// String returns the kind's name as it appears in states, logs and answers.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(names) {
		return "internal"
	}
	return names[k]
}

// Error is an error with a kind. Its text is its cause's.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf is fmt.Errorf with a kind.
func Errorf(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a kind; nil stays nil.
func Wrap(k Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, Err: err}
}

// Of returns the kind of the outermost Error in err's chain, else Internal.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err has kind k.
func Is(err error, k Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == k
}

// Store reports whether the store as a whole can take nothing because of err:
// full, read-only, corrupt or gone, or its backlog is full. A busy store is a slow one, not a broken one.
func Store(err error) bool {
	switch Of(err) {
	case Full, ReadOnly, Corrupt, Gone, Newer, Backlog:
		return true
	default:
		return false
	}
}

// Exit codes of the program, after sysexits.h where it has one.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNotRunning   = 3
	ExitNotInstalled = 4
	ExitTemporary    = 75
	ExitDenied       = 77
	ExitConfig       = 78
)

// ExitCode is what the process ends with when err ended it.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	switch Of(err) {
	case Invalid, Newer:
		return ExitConfig
	case Denied:
		return ExitDenied
	case Temporary, Busy, Full, Backlog:
		return ExitTemporary
	default:
		return ExitFailed
	}
}

// Status is the HTTP status that answers err.
func Status(err error) int {
	switch Of(err) {
	case Invalid:
		return 422
	case NotFound:
		return 404
	case Conflict:
		return 409
	case Denied:
		return 403
	case Temporary, Busy, Full, ReadOnly, Backlog:
		return 503
	default:
		return 500
	}
}
