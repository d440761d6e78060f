// Package channel is the contract between the engine and a channel type: what
// a type must supply, what it is given, and what each promises the other.
//
// A type turns one platform into Events and Exits. It owns a protocol and
// nothing else: the engine owns every retry, every wait and every lease, and
// hands the type a Link, through which all sockets, goroutines and commits go.
// The package holds no policy and imports only the standard library, so that a
// type can be written, and tested with channeltest, outside this module.
package channel

import (
	"context"
	"encoding/json"
)

// Channel is one connection of one installation, for one term. It is built, run
// once, and dropped.
type Channel interface {
	// Run connects and reads until ctx or the connection ends. It never waits
	// between attempts and never retries: it returns, and the engine owns all
	// waiting. It may replace its socket by a successor inside one term
	// (Link.Successor).
	//
	// It returns a classified end (Recycle, RateLimited, Rejected, Superseded)
	// or a plain error, which is transient; nil only when ctx ended.
	// context.Cause(ctx) says why it ended: ErrDraining, ErrReplaced, ErrRemoved
	// or ErrFenced. Except for ErrFenced, Run has Goodbye (2 s) to say goodbye
	// and commit a last cursor; then its sockets are closed under it.
	Run(ctx context.Context, link *Link) error
}

// Sender is a Channel that can also speak.
type Sender interface {
	Channel
	// Send returns a Receipt once the platform has taken the message. It may be
	// called from another goroutine while Run runs. NotSent(err): it surely was
	// not sent and is safe to retry. RateLimited(err, after): told to wait, with this
	// conversation; RateLimitedAll: with all of them.
	// Refused(err): the platform will never take it. Any other error: the
	// outcome is unknown.
	Send(ctx context.Context, m Message) (Receipt, error)
}

// Receipt is what the platform said when it took a message.
type Receipt struct {
	MessageID string
	Raw       json.RawMessage
}

// Term is the token that every durable write made for an installation carries.
// A write counts only while the lease names Owner and Epoch; an accept counts
// only while Run is the lease's current run, too.
type Term struct {
	Installation string // the lease's id: the carrier's, for a rider
	Owner        string // the session that holds the lease
	Epoch        int64  // grows with every grant
	Run          int64  // grows with every term, over the life of the lease
}
