// Package store is the sum of what the others ask of a database, and the place
// that picks one: by the scheme of its URL. It holds no SQL.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/internal/vault"
	"leasehold/store/maintenance"
	"leasehold/store/postgres"
	"leasehold/store/sqlite"
	"leasehold/store/storecopy"
)

// Store is one database in every role. What each method promises stands with
// the interface that asks for it; storetest holds every implementation to it.
type Store interface {
	engine.Store
	delivery.Outbox
	outbound.Postbox
	admin.Store
	vault.Store

	// Watch returns a channel that holds a value after a change that somebody should
	// act on at once; see sqlite.Store.Watch.
	Watch(ctx context.Context) <-chan struct{}
	// WatchMessages returns a channel that holds a value after another process may have
	// posted messages; nil where there is none.
	WatchMessages(ctx context.Context) <-chan struct{}

	// Seed is Reconcile for a store that has no installation; otherwise it does nothing
	// and says so. Of several nodes that start at once one seeds.
	Seed(ctx context.Context, want []admin.Installation) (added []string, seeded bool, err error)

	// Sweep deletes what is past its retention.
	Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error)
	// HoldTask takes a task that one node runs for all, for session, if nobody who is
	// alive holds it, and says who does: nobody, when the session is gone or draining.
	// It is held until the session ends, or engine.Store's Release of TaskLease(task).
	// While somebody holds it nothing is written.
	HoldTask(ctx context.Context, session, task string) (admin.TaskHolder, error)
	// Upkeep tends the database's files. What it has to do depends on the database.
	Upkeep(ctx context.Context) (maintenance.Tended, error)
	// Audit checks the order of epochs in the events after seq since.
	Audit(ctx context.Context, since int64) (maintenance.Audited, error)

	// Waiting measures what waits for delivery.
	Waiting(ctx context.Context) (maintenance.Waiting, error)
	// GiveWay marks the deliveries that wait of the oldest events as dropped, with a
	// reason, until as many bytes of events have given way, or a transaction's worth:
	// then there are more. What is in flight meanwhile is delivered, and its mark fenced.
	GiveWay(ctx context.Context, bytes int64, reason string) (maintenance.GivenUp, error)

	// Copying returns the store as one end of a copy.
	Copying(ctx context.Context) (storecopy.Target, error)

	// Close finishes the writes that wait. Calls made after it fail.
	Close() error
}

var (
	_ Store = (*sqlite.Store)(nil)
	_ Store = (*postgres.Store)(nil)
)

// Backer is a store that copies itself while it works. A server's is copied with
// the server's own tools.
type Backer interface {
	// BackupWithKey writes a copy to path, which must not exist; see sqlite.Store.
	BackupWithKey(ctx context.Context, path string, locked []byte) (maintenance.Copied, error)
	// BackupPath is the dated name, in dir, of a backup that is begun now.
	BackupPath(dir string) string
	// Rotate keeps a folder of dated backups; see sqlite.Store.Rotate.
	Rotate(ctx context.Context, r maintenance.Rotation) (maintenance.Rotated, error)
}

var _ Backer = (*sqlite.Store)(nil)

// Options of Open.
type Options struct {
	DataDir        string // remembers which store belongs there; see sqlite.Options
	NewStore       bool   // begin anew although DataDir remembers a store
	Name           string // the node's, for whoever finds the store locked
	ForceNetworkFS bool   // SQLite on a network file system, too
	Backups        string // where a damaged store's backups are; see sqlite.Options
	Manual         bool   // refuse an older schema, instead of bringing it up to date
	Copying        bool   // the target of an unfinished copy, too

	PollOnly     bool          // Postgres behind a pooler; see postgres.Options
	RenewTimeout time.Duration // Postgres; see postgres.Options
	Existing     bool          // Postgres: look at what is there, and make or upgrade nothing

	Log *slog.Logger
}

// Open opens the store that url names: sqlite:PATH, or postgres://… for one that
// several nodes share. Its errors have the kinds that the store's own Open
// documents; an unknown scheme is fault.Invalid.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	if Shared(url) {
		s, err := postgres.Open(ctx, url, postgres.Options{
			DataDir: o.DataDir, NewStore: o.NewStore, Name: o.Name, PollOnly: o.PollOnly, RenewTimeout: o.RenewTimeout, Existing: o.Existing, Manual: o.Manual, Copying: o.Copying, Log: o.Log,
		})
		if err != nil {
			return nil, err //nolint:wrapcheck // it says what and where
		}
		return s, nil
	}
	path, err := Path(url)
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, path, sqlite.Options{
		DataDir: o.DataDir, NewStore: o.NewStore, Name: o.Name, ForceNetworkFS: o.ForceNetworkFS, Backups: o.Backups, Manual: o.Manual, Copying: o.Copying, Log: o.Log,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what and where
	}
	return s, nil
}

// Schema compares the schema of the store that url names with the one that this
// program knows, and changes nothing.
func Schema(ctx context.Context, url string, o Options) (maintenance.Schema, error) {
	if Shared(url) {
		return postgres.Schema(ctx, url, postgres.Options{Name: o.Name, PollOnly: o.PollOnly}) //nolint:wrapcheck // it says what and where
	}
	path, err := Path(url)
	if err != nil {
		return maintenance.Schema{}, err
	}
	return sqlite.Schema(ctx, path, sqlite.Options{ForceNetworkFS: o.ForceNetworkFS}) //nolint:wrapcheck // it says what and where
}

// Shared reports whether url names a database that several nodes may use at once.
func Shared(url string) bool {
	scheme, _, ok := strings.Cut(url, ":")
	return ok && (scheme == "postgres" || scheme == "postgresql")
}

// Shown is url for people: without the password that it may hold.
func Shown(url string) string {
	if !Shared(url) {
		return url
	}
	return postgres.Shown(url)
}

// Path returns the file that a sqlite: URL names. Any other scheme is
// fault.Invalid; the URL is not repeated, since it may hold a password.
func Path(url string) (string, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case ok && scheme == "sqlite" && strings.TrimPrefix(rest, "//") != "":
		return strings.TrimPrefix(rest, "//"), nil
	default:
		return "", fmt.Errorf("store.url: %w", fault.Errorf(fault.Invalid, "it does not name a database this program knows; use sqlite:leasehold.db, or postgres://USER@HOST/DATABASE"))
	}
}
