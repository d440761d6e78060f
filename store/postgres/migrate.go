package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"leasehold/internal/fault"
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

// migrator brings one database's schema up to date. The library under it takes a
// newer schema in silence, so versions are compared here first.
type migrator struct {
	db   *sql.DB
	pool *pgxpool.Pool
	name string // of the database, for people
	from fs.FS
	log  *slog.Logger

	manual bool // a schema that is there is changed by nobody but a person
}

// provider reads the files. Nothing of another package's registry may end up in
// this schema.
func (m *migrator) provider() (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, m.db, m.from, goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

// check compares the schema with the one that this program uses, and changes
// nothing.
func (m *migrator) check(ctx context.Context) error {
	p, err := m.provider()
	if err != nil {
		return err
	}
	current, err := m.current(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if current == 0 {
		return fault.Errorf(fault.NotFound, "the database %s holds nothing yet: leasehold run fills it", m.name)
	}
	done, err := m.look(ctx, p.ListSources())
	if err == nil && !done {
		err = fault.Errorf(fault.Conflict, "the database %s has the older schema %d: leasehold run brings it up to date", m.name, current)
	}
	return err
}

// schema compares the schema with the one that this program knows, and changes
// nothing.
func (m *migrator) schema(ctx context.Context) (s maintenance.Schema, err error) {
	p, err := m.provider()
	if err != nil {
		return s, err
	}
	sources := p.ListSources()
	s.Known = sources[len(sources)-1].Version
	if s.Version, err = m.current(ctx); err != nil {
		return s, fmt.Errorf("read the schema's version: %w", err)
	}
	for _, source := range sources {
		if source.Version > s.Version {
			s.Pending = append(s.Pending, path.Base(source.Path))
		}
	}
	if s.Version > 0 {
		s.MinReader, err = m.minReader(ctx)
	}
	return s, err
}

func (m *migrator) minReader(ctx context.Context) (n int64, err error) {
	if err := m.pool.QueryRow(ctx, `SELECT min_reader FROM schema_info WHERE id = 1`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return n, nil
}

// run looks without a lock first: of a thousand starts one has something to do.
func (m *migrator) run(ctx context.Context) error {
	p, err := m.provider()
	if err != nil {
		return err
	}
	sources := p.ListSources()
	done, err := m.look(ctx, sources)
	if err != nil || done {
		return err
	}
	switch current, err := m.current(ctx); {
	case err != nil:
		return err
	case m.manual && current > 0:
		return fault.Errorf(fault.Invalid, "the database %s has schema %d, this program needs schema %d, and store.migrate is manual: run leasehold migrate", m.name, current, sources[len(sources)-1].Version)
	}
	return m.alone(ctx, func() error {
		if done, err := m.look(ctx, sources); err != nil || done {
			return err // another node was faster
		}
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("upgrade the schema to %d: %w", sources[len(sources)-1].Version, err)
		}
		m.log.InfoContext(ctx, "schema upgraded", "schema", sources[len(sources)-1].Version)
		return m.record(ctx, sources)
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

// look reports whether the schema is as this program needs it.
func (m *migrator) look(ctx context.Context, sources []*goose.Source) (bool, error) {
	target := sources[len(sources)-1].Version
	current, err := m.current(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("read the schema's version: %w", err)
	case current > target:
		return true, m.allowNewer(ctx, current, target)
	case current == 0:
		return false, nil
	}
	known, err := m.recorded(ctx)
	if err != nil {
		return false, fmt.Errorf("read the schema's history: %w", err)
	}
	complete := true
	for _, s := range sources {
		sum, err := m.sum(s)
		if err != nil {
			return false, err
		}
		was, applied := known[s.Version]
		if applied && was != sum {
			return false, fault.Errorf(fault.Internal, "migration %s is not the one that was applied to %s: use the program that made it, or a newer release", path.Base(s.Path), m.name)
		}
		complete = complete && applied
	}
	return current == target && complete, nil
}

// current is the newest migration applied; 0 = none.
func (m *migrator) current(ctx context.Context) (v int64, err error) {
	var there bool
	if err := m.pool.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = m.pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}

// allowNewer accepts a newer schema that says that this program may use it: nodes
// are upgraded one after the other.
func (m *migrator) allowNewer(ctx context.Context, current, target int64) error {
	reader, err := m.minReader(ctx)
	if err != nil || reader <= target {
		return err
	}
	return fault.Errorf(fault.Newer,
		"the database %s has schema %d, of a newer version: it needs a program that knows schema %d, and this one knows schema %d; install the newer version on this node, too",
		m.name, current, reader, target)
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
func (m *migrator) record(ctx context.Context, sources []*goose.Source) error {
	for _, s := range sources {
		sum, err := m.sum(s)
		if err != nil {
			return err
		}
		_, err = m.pool.Exec(ctx, `INSERT INTO schema_file(version, name, sha256, applied_at) VALUES ($1, $2, $3, leasehold_now()) ON CONFLICT (version) DO NOTHING`,
			s.Version, path.Base(s.Path), sum)
		if err != nil {
			return fmt.Errorf("write the schema's history: %w", err)
		}
	}
	return nil
}

func (m *migrator) sum(s *goose.Source) (string, error) {
	b, err := fs.ReadFile(m.from, path.Base(s.Path))
	if err != nil {
		return "", fmt.Errorf("read migration %d: %w", s.Version, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
