package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"leasehold/store"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
	"leasehold/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// database is a real one, whose clock is the bubble's.
type database interface {
	// open opens it, as one process does.
	open(r *rig) (store.Store, error)
	// tick sets its clock, where it has one of its own.
	tick(r *rig)
	// leave gives up what tick needed, before the bubble ends.
	leave(r *rig)
}

// sqliteFile is a file on a disk: sole, under the lock that proves a process to be
// alone, or shared, without it.
type sqliteFile struct {
	path string
	as   func(context.Context, string, sqlite.Options) (*sqlite.Store, error)
}

func soleSQLite(t *testing.T) database { return newSQLite(t, sqlite.Open) }

func sharedSQLite(t *testing.T) database { return newSQLite(t, sqlite.Shared) }

func newSQLite(t *testing.T, as func(context.Context, string, sqlite.Options) (*sqlite.Store, error)) database {
	return &sqliteFile{filepath.Join(t.TempDir(), "leasehold.db"), as}
}

func (d *sqliteFile) open(r *rig) (store.Store, error) {
	return d.as(r.Context(), d.path, sqlite.Options{ReserveBytes: -1, Now: r.now})
}
func (*sqliteFile) tick(*rig)  {}
func (*sqliteFile) leave(*rig) {}

// postgresDatabase is one of a real server, outside of the bubble. Time stands still
// while a question is on its way or an answer is: a goroutine that waits for the
// network is not one that waits for time to pass. What waits for the network for
// ever is a LISTEN; the store polls, as it does behind a pooler.
type postgresDatabase struct {
	url string

	mu    sync.Mutex // guards clock
	clock *pgx.Conn
}

// bubbleClock is a clock that is set from outside. A sequence obeys no transaction:
// what was set is seen at once by everybody.
const bubbleClock = `CREATE SEQUENCE bubble_clock;
CREATE OR REPLACE FUNCTION leasehold_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT last_value FROM bubble_clock'`

// template is the database that the others are copies of; "" = not made yet.
var template struct {
	sync.Mutex

	name string
}

// atOnce bounds how many scenarios are connected to the server at once, which has
// two hundred places.
var atOnce = make(chan struct{}, 4)

// realPostgres makes a database by copying one that has the schema already.
func realPostgres(t *testing.T) database {
	t.Helper()
	atOnce <- struct{}{}
	t.Cleanup(func() { <-atOnce })
	server := pgtest.Shared(t)
	template.Lock()
	defer template.Unlock()
	if template.name == "" {
		server.Exec(t, "CREATE DATABASE scenarios")
		s, err := postgres.Open(t.Context(), server.URL("scenarios"), postgres.Options{PollOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, server.URL("scenarios"), bubbleClock)
		template.name = "scenarios"
	}
	return &postgresDatabase{url: server.Copy(t, template.name)}
}

func (d *postgresDatabase) open(r *rig) (store.Store, error) {
	d.tick(r)
	return postgres.Open(r.Context(), d.url, postgres.Options{PollOnly: true})
}

func (d *postgresDatabase) tick(r *rig) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx := context.WithoutCancel(r.Context())
	if d.clock == nil {
		conn, err := pgx.Connect(ctx, d.url)
		if err != nil {
			r.Errorf("set the database's clock: %v", err)
			return
		}
		d.clock = conn
	}
	if _, err := d.clock.Exec(ctx, fmt.Sprintf("SELECT setval('bubble_clock', %d)", r.now().UnixMilli())); err != nil {
		r.Errorf("set the database's clock: %v", err)
	}
}

func (d *postgresDatabase) leave(r *rig) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clock == nil {
		return
	}
	if err := d.clock.Close(context.WithoutCancel(r.Context())); err != nil {
		r.Errorf("leave the database's clock: %v", err)
	}
}
