package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"leasehold/internal/fault"
	"leasehold/store/internal/ladder"
	"leasehold/store/maintenance"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are the files that make the schema, in the order of their numbers.
func migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the name above is wrong
	}
	return sub
}

// migrationLock is the number of the lock under which one node at a time changes
// the schema: "LSHD".
const migrationLock = 1280526404

// migrator brings one database's schema up to date.
type migrator struct {
	*ladder.Ladder
	pool *pgxpool.Pool
	name string // of the database, for people
	log  *slog.Logger

	manual bool // a schema that is there is changed by nobody but a person
}

func newMigrator(db *sql.DB, pool *pgxpool.Pool, name string, log *slog.Logger) (*migrator, error) {
	l, err := ladder.Read(goose.DialectPostgres, db, name, migrations())
	return &migrator{Ladder: l, pool: pool, name: name, log: log}, err
}

// check compares the schema with the one that this program uses, and changes
// nothing.
func (m *migrator) check(ctx context.Context) error {
	current, err := m.current(ctx)
	if err != nil {
		return err
	}
	if current == 0 {
		return fault.Errorf(fault.NotFound, "the database %s holds nothing yet: leasehold run fills it", m.name)
	}
	done, err := m.look(ctx, current)
	if err == nil && !done {
		err = fault.Errorf(fault.Conflict, "the database %s has the older schema %d: leasehold run brings it up to date", m.name, current)
	}
	return err
}

// schema compares the schema with the one that this program knows, and changes
// nothing.
func (m *migrator) schema(ctx context.Context) (s maintenance.Schema, err error) {
	current, err := m.current(ctx)
	if err != nil {
		return s, err
	}
	s = m.Above(current)
	if current > 0 {
		s.MinReader, err = m.minReader(ctx)
	}
	return s, err
}

// run looks without a lock first: of a thousand starts one has something to do.
func (m *migrator) run(ctx context.Context) error {
	done := func() (current int64, done bool, err error) {
		if current, err = m.current(ctx); err == nil {
			done, err = m.look(ctx, current)
		}
		return current, done, err
	}
	current, ready, err := done()
	switch {
	case err != nil || ready:
		return err
	case m.manual && current > 0:
		return m.Manual(current)
	}
	return m.alone(ctx, func() error {
		if _, ready, err := done(); err != nil || ready {
			return err // another node was faster
		}
		if err := m.Climb(ctx); err != nil {
			return err
		}
		m.log.InfoContext(ctx, "schema upgraded", "schema", m.Top())
		return m.record(ctx)
	})
}

// alone runs f while this node holds the lock, in a transaction of its own that
// does nothing else: a pooler lets no other kind of lock be kept, and one that is
// lost with its connection is given up by the server.
func (m *migrator) alone(ctx context.Context, f func() error) (err error) {
	tx, err := m.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	for _, query := range []string{
		`SET LOCAL idle_in_transaction_session_timeout = 0`, `SET LOCAL statement_timeout = 0`,
	} {
		if _, err := tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for the node that upgrades the schema: %w", err)
	}
	return f()
}

// look reports whether the schema, of the version current, is as this program needs
// it. A newer one that says that this program may use it is: nodes are upgraded one
// after the other.
func (m *migrator) look(ctx context.Context, current int64) (bool, error) {
	switch {
	case current > m.Top():
		reader, err := m.minReader(ctx)
		if err != nil {
			return false, err
		}
		return true, m.Newer(current, reader, "install the newer version on this node, too")
	case current == 0:
		return false, nil
	}
	known, err := m.recorded(ctx)
	if err != nil {
		return false, fmt.Errorf("read the schema's history: %w", err)
	}
	complete, err := m.Same(known)
	return complete && current == m.Top(), err
}

// current is the newest migration applied; 0 = none.
func (m *migrator) current(ctx context.Context) (v int64, err error) {
	var there bool
	if err := m.pool.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, readVersion(err)
	}
	err = m.pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, readVersion(err)
}

func (m *migrator) minReader(ctx context.Context) (n int64, err error) {
	if err := m.pool.QueryRow(ctx, `SELECT min_reader FROM schema_info WHERE id = 1`).Scan(&n); err != nil {
		return 0, readVersion(err)
	}
	return n, nil
}

// readVersion says what failed; nil stays nil.
func readVersion(err error) error {
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	return nil
}

func (m *migrator) recorded(ctx context.Context) (map[int64]string, error) {
	known := map[int64]string{}
	rows, err := m.pool.Query(ctx, `SELECT version, sha256 FROM schema_file`)
	if err != nil {
		return nil, err
	}
	var v int64
	var sum string
	_, err = pgx.ForEachRow(rows, []any{&v, &sum}, func() error {
		known[v] = sum
		return nil
	})
	return known, err
}

// record writes down the files that were applied; those known already stay.
func (m *migrator) record(ctx context.Context) error {
	for _, r := range m.Rungs {
		_, err := m.pool.Exec(ctx, `INSERT INTO schema_file(version, name, sha256, applied_at) VALUES ($1, $2, $3, leasehold_now()) ON CONFLICT (version) DO NOTHING`,
			r.Version, r.Name, r.Sum)
		if err != nil {
			return fmt.Errorf("write the schema's history: %w", err)
		}
	}
	return nil
}
