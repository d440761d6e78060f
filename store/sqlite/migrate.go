package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/pressly/goose/v3"

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

// migrator brings one database's schema up to date. The library under it knows no
// lock on SQLite, so its caller holds the database's lock.
type migrator struct {
	*ladder.Ladder
	db   *sql.DB
	path string
	now  time.Time
	log  *slog.Logger

	manual bool // a schema that is there is changed by nobody but a person
}

func newMigrator(db *sql.DB, path string, from fs.FS) (*migrator, error) {
	l, err := ladder.Read(goose.DialectSQLite3, db, path, from)
	return &migrator{Ladder: l, db: db, path: path}, err
}

func (m *migrator) run(ctx context.Context) error {
	current, err := m.current(ctx)
	if err != nil {
		return err
	}
	if current > m.Top() {
		return m.newer(ctx, current)
	}
	known, err := m.recorded(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's history: %w", err)
	}
	complete, err := m.Same(known)
	switch {
	case err != nil:
		return err
	case current < m.Top():
		if err := m.upgrade(ctx, current); err != nil {
			return err
		}
	case complete:
		return nil
	}
	return m.record(ctx, known)
}

func (m *migrator) upgrade(ctx context.Context, current int64) error {
	if current > 0 {
		if m.manual {
			return m.Manual(current)
		}
		if err := m.copyFirst(ctx, current); err != nil {
			return err
		}
	}
	return m.Climb(ctx)
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

// current is the newest migration applied; 0 = none.
func (m *migrator) current(ctx context.Context) (v int64, err error) {
	var n int
	if err := m.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&n); err != nil || n == 0 {
		return 0, readVersion(err)
	}
	err = m.db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1`).Scan(&v)
	return v, readVersion(err)
}

func (m *migrator) minReader(ctx context.Context) (n int64, err error) {
	if err := m.db.QueryRowContext(ctx, `SELECT min_reader FROM schema_info WHERE id = 1`).Scan(&n); err != nil {
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

// newer accepts a newer schema that says that this program may use it, as an
// upgrade that is rolled back leaves one.
func (m *migrator) newer(ctx context.Context, current int64) error {
	reader, err := m.minReader(ctx)
	if err != nil {
		return err
	}
	return m.Newer(current, reader, "install the newer version again, or restore a backup made before the upgrade")
}

func (m *migrator) recorded(ctx context.Context) (_ map[int64]string, err error) {
	var n int
	if err := m.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'schema_file'`).Scan(&n); err != nil || n == 0 {
		return nil, err
	}
	rows, err := m.db.QueryContext(ctx, `SELECT version, sha256 FROM schema_file`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	known := map[int64]string{}
	for rows.Next() {
		var v int64
		var sum string
		if err := rows.Scan(&v, &sum); err != nil {
			return nil, err
		}
		known[v] = sum
	}
	return known, rows.Err()
}

// record writes down the files that were applied and are not known yet.
func (m *migrator) record(ctx context.Context, known map[int64]string) error {
	for _, r := range m.Rungs {
		if known[r.Version] != "" {
			continue
		}
		_, err := m.db.ExecContext(ctx, `INSERT INTO schema_file(version, name, sha256, applied_at) VALUES ($1, $2, $3, $4)`,
			r.Version, r.Name, r.Sum, m.now.UnixMilli())
		if err != nil {
			return fmt.Errorf("write the schema's history: %w", err)
		}
	}
	return nil
}

// copyFirst copies the database beside itself before its schema changes: there
// is no way back but a copy.
func (m *migrator) copyFirst(ctx context.Context, version int64) error {
	name := fmt.Sprintf("%s.schema%d-%s", m.path, version, m.now.UTC().Format("20060102T150405Z"))
	if err := vacuumInto(ctx, m.db, name); err != nil {
		return fmt.Errorf("copy the database to %s before the upgrade: %w", name, err)
	}
	m.log.InfoContext(ctx, "database copied before the upgrade", "copy", name, "schema", version)
	return nil
}

// vacuumInto writes a compact copy of the database to name, which must not
// exist, for its owner's eyes only, and syncs it.
func vacuumInto(ctx context.Context, db *sql.DB, name string) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, name)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
