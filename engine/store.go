package engine

import (
	"context"
	"errors"
	"time"

	"leasehold/channel"
)

// What a Store answers beside its kinds of fault.
var (
	// ErrSessionGone: the session row is gone. The session is dead for ever.
	ErrSessionGone = errors.New("session is gone")
	// ErrIdentityTaken: another process uses this instance id.
	ErrIdentityTaken = errors.New("another process uses this identity")
	// ErrFenced: the lease no longer names this owner, epoch or run. Nothing was
	// written.
	ErrFenced = errors.New("fenced")
)

// SessionRequest opens a session.
type SessionRequest struct {
	ID       string // new and random
	Instance string // of the data folder; stable over restarts
	Previous string // this instance's last session id; "" = none
	Host     string // boot id and data folder's inode: with the same host, Previous is dead
	TTL      time.Duration
	Weight   int
	Name     string // the node's, for people
	Version  string
}

// Session is a session as the store has it after opening or renewing.
type Session struct {
	ID  string
	Seq int64
	Now time.Time // the store's clock
}

// Snapshot is all that a node needs to decide what to run. A store that knows
// that nothing changed since Version may leave everything else empty and say
// Unchanged.
type Snapshot struct {
	Version       int64
	Unchanged     bool
	Installations []Installation
	Leases        []Lease
	Peers         []Peer // live sessions, our own included
}

// Store is what the engine asks of a database. Every method honours its
// context by returning; a statement already sent may still take effect, so an
// error without a kind that says otherwise means that the outcome is unknown.
// Every write that carries a Term is fenced in the same statement: it takes
// effect only while the lease names that owner and epoch and the owner's session
// row exists, and else returns ErrFenced.
//
// Errors that mean that the store can take nothing have a kind for which
// fault.Store is true.
type Store interface {
	// Sole reports whether this process is proven to be the only one, by a lock
	// that the operating system drops with the process. A sole owner's session has
	// no expiry and is never renewed.
	Sole() bool

	// OpenSession writes the session row. It replaces Previous at once when the
	// host is the same, any other session of the instance only after its expiry,
	// else ErrIdentityTaken. A repeat with the same ID succeeds. A sole owner
	// deletes every other session; when the machine was booted since the previous
	// session it also clears every lease's fails and not_before. The session of a
	// drained node is draining from the start.
	OpenSession(ctx context.Context, r SessionRequest) (Session, error)
	// RenewSession extends the session by ttl of the store's clock from now. It
	// never brings a session back: ErrSessionGone, or ErrIdentityTaken when
	// another session stands under the instance id.
	RenewSession(ctx context.Context, id string, ttl time.Duration) (Session, error)
	// DrainSession marks the session, so that nothing more is claimed for it. It is
	// what a process does that is about to end.
	DrainSession(ctx context.Context, id string) error
	// DrainNode says of the node with this instance id that it shall hold nothing, or
	// that it may again, and wakes every node. It outlives the node's sessions and
	// processes, and marks the session that is open as DrainSession does; the node
	// itself finds out from its own Peer in List. A repeat succeeds. A node that has no
	// session and is not drained is a fault.NotFound.
	DrainNode(ctx context.Context, instance string, drained bool) error
	// EndSession deletes the row; deleting it again succeeds.
	EndSession(ctx context.Context, id string) error
	// Reap deletes the sessions that have expired on the store's clock, unless that
	// clock is past notAfter: then it stepped, and nobody has expired for sure. It
	// returns how many it deleted.
	Reap(ctx context.Context, notAfter time.Time) (int, error)

	// List returns what there is to run. known is the Version last seen, 0 = none.
	List(ctx context.Context, known int64) (Snapshot, error)
	// Claim takes those of ids that are free, for session, while its row exists
	// and is not draining. Each grant has a larger epoch than any before it.
	Claim(ctx context.Context, session string, ids []string) ([]Grant, error)
	// BeginTerm makes run + 1 the lease's current run and returns it with the
	// cursor stored for identity (nil = none): nothing of an earlier term can land
	// after that. t.Run is ignored.
	BeginTerm(ctx context.Context, t channel.Term, identity string) (run int64, cursor []byte, err error)
	// SaveBackoff stores how a term failed. Owner and epoch fence it. When the
	// installation has another fingerprint by now it stores nothing, which is no
	// error: what the old one earned says nothing of the new one.
	SaveBackoff(ctx context.Context, t channel.Term, b Setback) error
	// Release frees those of held that session owns under that epoch, and wakes
	// the other nodes. A stale release does nothing. It returns the ids freed.
	Release(ctx context.Context, session string, held []Held) ([]string, error)

	// Accept makes a batch durable: its events once per (installation, event id),
	// a delivery for each target of each new event, and the cursor, all or nothing.
	// When it returns nil they are on the disk. Batches take effect in the order
	// of the calls. An event whose Installation is not the term's must ride on it.
	Accept(ctx context.Context, r AcceptRequest) (Accepted, error)
	// SaveStatus writes link states, each fenced by its term's owner and epoch;
	// those that are fenced are skipped.
	SaveStatus(ctx context.Context, s []TermStatus) error
	// Spend takes n of the lease's budget for the window that began at start; it
	// reports what is used after it, or false when limit would be passed.
	Spend(ctx context.Context, t channel.Term, start time.Time, n, limit int) (used int, ok bool, err error)
	// Probe writes and commits something small but page-sized, and removes it: nil
	// means that the store takes writes again.
	Probe(ctx context.Context) error
}

// TermStatus is a state with the token that fences its write.
type TermStatus struct {
	Term   channel.Term
	Status LinkStatus
}
