package channel

import (
	"errors"
	"time"
)

// Why a term's context ended, as context.Cause(ctx) says it.
var (
	ErrDraining = errors.New("draining")            // the node gives the installation up, or stops
	ErrReplaced = errors.New("replaced")            // the config changed; a successor follows at once
	ErrRemoved  = errors.New("removed")             // the installation was removed or disabled
	ErrFenced   = errors.New("lease lost")          // another node may run it: no goodbye, no write
	ErrParked   = errors.New("store takes nothing") // nothing that is heard could be kept
)

// What Link.Accept returns beside its own mistakes.
var (
	// ErrStore: the store did not take the batch. Do not acknowledge; end the
	// connection so that the platform delivers again.
	ErrStore = errors.New("the store did not take it")
	// ErrTooLarge: an event is above the size limit. It was not stored and never
	// will be; it was counted. Acknowledge it if the platform would repeat it for ever.
	ErrTooLarge = errors.New("event too large")
)

// ErrKilled is what Read and Write of a connection return once its term has
// been killed: deliberately not net.ErrClosed, which some protocol libraries
// take for an orderly end of their own making.
var ErrKilled = errors.New("connection killed: its term is over")

// Class is how the engine reacts to the end of a term.
type Class int

// The classes of exit. A plain error is Transient.
const (
	Transient Class = iota // network, 5xx: backoff
	ClassRecycle
	ClassRateLimited
	ClassRejected
	ClassSuperseded
)

var classNames = [...]string{"transient", "recycle", "rate_limited", "rejected", "superseded"}

// String returns the class as metrics and logs name it.
func (c Class) String() string { return classNames[c] }

// Exit is a classified end. Code is a short reason (`auth`, `close_4004`),
// Words the platform's own, redacted by the type.
type Exit struct { //nolint:errname // an Exit is more than its error: the end of a term
	Class Class
	After time.Duration // RateLimited: wait this long
	All   bool          // RateLimited, of a Send or a Call: see RateLimitedAll
	Code  string
	Err   error
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

// Recycle is an exit: the platform asked for a new connection. Dialled again at once
// (0–1 s); failures are not counted.
func Recycle(err error) error { return &Exit{Class: ClassRecycle, Code: "recycle", Err: err} }

// RateLimited is an exit: the platform said how long to wait. Exactly that, plus jitter.
// Of a Send it is the conversation that waits; others go on.
func RateLimited(err error, after time.Duration) error {
	return &Exit{Class: ClassRateLimited, After: after, Code: "rate_limited", Err: err}
}

// RateLimitedAll is RateLimited of a Send or a Call when the platform meant the account
// and not one conversation: everything that the installation sends waits.
func RateLimitedAll(err error, after time.Duration) error {
	return &Exit{Class: ClassRateLimited, After: after, All: true, Code: "rate_limited", Err: err}
}

// Rejected is an exit: credentials or config are wrong. The installation is blocked until
// its config changes, but for a slow probe: 5 min, doubling to 6 h.
func Rejected(code string, err error) error {
	return &Exit{Class: ClassRejected, Code: code, Err: err}
}

// Superseded is an exit: somebody else holds the platform's session. Three tries at
// 5–15 s, since a restart races its own ghost; then every 5 min.
func Superseded(err error) error {
	return &Exit{Class: ClassSuperseded, Code: "superseded", Err: err}
}

// Failed is a transient end with a code of its own.
func Failed(code string, err error) error { return &Exit{Class: Transient, Code: code, Err: err} }

// Classify returns what err says of the end of a term.
func Classify(err error) Exit {
	if e, ok := errors.AsType[*Exit](err); ok {
		return Exit{Class: e.Class, After: e.After, All: e.All, Code: e.Code, Err: err}
	}
	return Exit{Class: Transient, Code: "disconnected", Err: err}
}

type sendError struct {
	err  error
	kind SendOutcome
}

// SendOutcome is what is known of a message after Send failed.
type SendOutcome int

// The outcomes of a failed Send.
const (
	SendUnknown SendOutcome = iota // it may have been sent
	SendNot                        // it surely was not
	SendRefused                    // the platform will never take it
)

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

// NotSent marks a failed Send: the message surely was not sent; a retry is safe.
func NotSent(err error) error { return &sendError{err, SendNot} }

// Refused marks a failed Send: the platform will never take the message.
func Refused(err error) error { return &sendError{err, SendRefused} }

// Outcome returns what a failed Send says of its message.
func Outcome(err error) SendOutcome {
	if s, ok := errors.AsType[*sendError](err); ok {
		return s.kind
	}
	if e, ok := errors.AsType[*Exit](err); ok && e.Class == ClassRateLimited {
		return SendNot
	}
	return SendUnknown
}
