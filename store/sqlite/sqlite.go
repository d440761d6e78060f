// Package sqlite is the store on one file: the default of a box that nobody
// looks after.
//
// It promises what engine.Store, delivery.Outbox, outbound.Postbox and admin.Store
// ask for, to one process: a lock that the operating system drops with the process proves that
// there is no other, so nothing is written at rest, not even a heartbeat. Every
// write goes through one goroutine, which commits what many callers brought
// together; when a call returns nil, it is on the disk (FULL, always). After a
// full or failing disk it goes on by itself; into a damaged, removed or replaced
// file it never writes again.
//
// It is not for a network file system, nor for two processes at a time.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/internal/vault"
	"leasehold/store/internal/audit"
	"leasehold/store/internal/hub"
	"leasehold/store/internal/record"
	"leasehold/store/maintenance"
)

// Options of Open. The zero value is a store with the defaults.
type Options struct {
	// DataDir is the folder whose instance.json remembers which store belongs there,
	// so that a lost database is not begun anew in silence. "" = nothing is remembered.
	DataDir string
	// NewStore begins a new store although DataDir remembers another one.
	NewStore bool
	// Name is the node's, told to whoever finds the database locked.
	Name string
	// ForceNetworkFS opens a database on a network file system, too.
	ForceNetworkFS bool
	// ReserveBytes is kept in a file of its own, to be given up when the disk is full
	// so that tidying up can run: folding the log in may take as much as the log has.
	// 0 = 16 MiB, four logs. Negative = none.
	ReserveBytes int64
	// Manual refuses an older schema, instead of bringing it up to date.
	Manual bool
	// Copying opens the target of a copy that is not finished, which is refused otherwise.
	Copying bool
	// Backups is the folder whose newest backup is named when the database is damaged.
	Backups string
	// Log is told what needs a person; nil = nobody is.
	Log *slog.Logger
	// Now is the store's clock; nil = time.Now.
	Now func() time.Time
}

// Store is an open database. All its methods are safe for concurrent use.
type Store struct {
	*reads
	*record.Writes // by people, that are alike in every database
	opt            Options
	log            *slog.Logger
	lock           *fileLock // nil: opened by Shared
	keep           *sql.Conn // open as long as the store is
	c              *committer
	last           *sql.DB // closed after all the others; nil when they may fold the log in

	version   atomic.Int64                          // grows with whatever List shows
	structure atomic.Int64                          // grows with installations, leases and sessions
	settled   atomic.Int64                          // the structure in which nothing was disabled or removed
	commits   atomic.Int64                          // how many there were, without notes of tasks: upkeep and backups rest while it stands still
	tended    atomic.Int64                          // the commits that the last upkeep saw
	nextCheck atomic.Int64                          // when the whole file is read again, in ms
	retention atomic.Pointer[maintenance.Retention] // as the sweeper was last told
	audit     audit.Auditor
	changes   hub.Hub
	closed    atomic.Bool
	instances sync.Map // instance id by session id, of those opened here

	latch    atomic.Pointer[error] // why nothing is written any more
	full     atomic.Bool           // nothing is accepted until Probe succeeds
	checkDue atomic.Bool           // the whole file is still to be read after an unclean stop
	files    atomic.Pointer[files] // as they were when opened

	id      string       // of the store, for the names of its backups
	copying sync.Mutex   // held by the one backup that is being made
	rotated atomic.Int64 // the commits, and one, that the last rotated backup saw

	hook atomic.Pointer[func(committed bool) error] // tests only: breaks the next commits
}

var (
	_ engine.Store     = (*Store)(nil)
	_ delivery.Outbox  = (*Store)(nil)
	_ outbound.Postbox = (*Store)(nil)
	_ admin.Store      = (*Store)(nil)
	_ vault.Store      = (*Store)(nil)
)

// Watch returns a channel that holds a value after something changed that List
// shows and that did not come from a lease's own holder: an installation was
// written, a lease was freed, another program wrote. Values are coalesced: one
// means look, whatever happened. It ends with ctx and is never closed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.changes.Watch(ctx) }

func (s *Store) millis() int64 { return s.opt.Now().UnixMilli() }

// judge gives err its kind, and remembers the kinds after which something
// changes: nothing is written into a damaged or removed file again, nothing is
// accepted on a full disk.
func (s *Store) judge(err error) error {
	if err == nil {
		return nil
	}
	err = classify(s.path, err)
	if fault.Is(err, fault.ReadOnly) { // or is it not there?
		if gone := s.sameFiles(); gone != nil {
			err = gone
		}
	}
	switch fault.Of(err) {
	case fault.Corrupt, fault.Gone:
		if s.latch.Load() == nil {
			err = s.advise(err)
		}
		if s.latch.CompareAndSwap(nil, &err) {
			s.log.Error("store stopped", "error", err)
		}
	case fault.Full:
		if !s.full.Swap(true) {
			s.log.Error("store full", "error", err)
		}
	}
	return err
}

// broken returns why nothing may be written any more.
func (s *Store) broken() error {
	if err := s.latch.Load(); err != nil {
		return *err
	}
	return nil
}

// accepting returns why no event can be taken.
func (s *Store) accepting() error {
	if err := s.broken(); err != nil {
		return err
	}
	if s.full.Load() {
		return fullError(s.path, errors.New("nothing is accepted until there is room"))
	}
	return nil
}

// WatchMessages returns nil: nobody else posts messages here. Whoever does in this
// process tells who sends them.
func (s *Store) WatchMessages(context.Context) <-chan struct{} { return nil }
