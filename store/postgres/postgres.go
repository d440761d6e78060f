// Package postgres is the store for several nodes: one PostgreSQL database, 14 or
// newer, and any number of processes that share its installations.
//
// It promises what engine.Store, delivery.Outbox, outbound.Postbox and admin.Store
// ask for. Every
// write of a holder is fenced by a share lock on its lease's row, so that a
// takeover waits for what is being committed and nothing lands after it; the
// database's clock alone decides about expiry; a write that returned nil is on the
// disk of the server (synchronous_commit is forced on).
//
// Three kinds of connection keep three kinds of work apart: one renews the session
// and does nothing else, so that a renewal never waits for events; one listens for
// what other nodes changed; a pool does the rest. Behind a pooler that hands a
// connection to somebody else after each transaction (Options.PollOnly) nothing is
// kept in a connection, and changes are polled for.
//
// It is not proof that a process is alone: Sole is false, sessions have expiries.
package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/vault"
	"leasehold/store/internal/audit"
	"leasehold/store/internal/hub"
	"leasehold/store/internal/record"
)

// Options of Open. The zero value is a store with the defaults.
type Options struct {
	// DataDir is the folder whose instance.json remembers which store belongs there.
	// "" = nothing is remembered.
	DataDir string
	// NewStore makes the database the one that belongs to DataDir although that remembers
	// another one.
	NewStore bool
	// Name is the node's, shown by the server as the application's.
	Name string
	// Existing opens what is there and makes or upgrades nothing: fault.NotFound when
	// there is no schema, fault.Conflict when an older program made it.
	Existing bool
	// Manual refuses an older schema, instead of bringing it up to date.
	Manual bool
	// Copying opens the target of a copy that is not finished, which is refused otherwise.
	Copying bool
	// PollOnly is for a pooler in transaction mode: no LISTEN, no prepared statements,
	// no settings that outlive a transaction. Changes by other nodes are then polled
	// for, once a second.
	PollOnly bool
	// RenewTimeout bounds a renewal on the server, too, so that one that hangs there
	// does not hold the session's row for longer than its caller waits; 0 = 3 s.
	RenewTimeout time.Duration
	// Log is told what needs a person; nil = nobody is.
	Log *slog.Logger
}

// Store is an open database. All its methods are safe for concurrent use.
type Store struct {
	*reads
	*record.Writes // by people, that are alike in every database
	opt            Options
	log            *slog.Logger
	target         *target
	pool           *pgxpool.Pool
	renewals       renewals
	writers        [writerCount]*committer
	audit          audit.Auditor
	changes        hub.Hub
	mail           hub.Hub // of those who send

	instances sync.Map // instance id by session id, of those opened here

	posts      chan struct{}      // holds one while other nodes are to be told of messages
	background context.CancelFunc // ends what listens or polls
	watching   sync.WaitGroup     // what listens or polls

	mu     sync.Mutex     // guards closed
	closed bool           // no write begins any more
	busy   sync.WaitGroup // writes under way

	hook atomic.Pointer[func(committed bool) error] // tests only: breaks the next commits
}

var (
	_ engine.Store     = (*Store)(nil)
	_ delivery.Outbox  = (*Store)(nil)
	_ outbound.Postbox = (*Store)(nil)
	_ admin.Store      = (*Store)(nil)
	_ vault.Store      = (*Store)(nil)
)

// Sole implements engine.Store: other processes may use the database.
func (s *Store) Sole() bool { return false }

// Watch returns a channel that holds a value after something changed that List
// shows and that did not come from a lease's own holder: an installation was
// written, a lease was freed, deliveries wait again; by this process or another.
// Values are coalesced: one means look, whatever happened. After a lost connection
// there is one in any case. It ends with ctx and is never closed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.changes.Watch(ctx) }

// WatchMessages returns a channel that holds a value after another process, or this
// one, has posted messages. Values are coalesced, and after a lost connection there is
// one in any case. It ends with ctx and is never closed.
func (s *Store) WatchMessages(ctx context.Context) <-chan struct{} { return s.mail.Watch(ctx) }
