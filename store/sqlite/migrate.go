package sqlite

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
	"os"
	"path"
	"time"

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

// migrator brings one database's schema up to date. The library under it knows
// no lock on SQLite and takes a newer schema in silence, so its caller holds the
// database's lock, and versions are compared here first.
type migrator struct {
	db   *sql.DB
	path string
	from fs.FS
	now  time.Time
	log  *slog.Logger

	manual bool // a schema that is there is changed by nobody but a person
}

func (m *migrator) run(ctx context.Context) error {
	p, err := m.provider()
	if err != nil {
		return err
	}
	sources := p.ListSources()
	target := sources[len(sources)-1].Version
	current, err := m.current(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if current > target {
		return m.allowNewer(ctx, current, target)
	}
	if err := m.compare(ctx, sources); err != nil {
		return err
	}
	if current == target {
		return m.record(ctx, sources)
	}
	if current > 0 {
		if m.manual {
			return fault.Errorf(fault.Invalid, "the database %s has schema %d, this program needs schema %d, and store.migrate is manual: run leasehold migrate", m.path, current, target)
		}
		if err := m.copyFirst(ctx, current); err != nil {
			return err
		}
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("upgrade the schema from %d to %d: %w", current, target, err)
	}
	return m.record(ctx, sources)
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
	if err := m.db.QueryRowContext(ctx, `SELECT min_reader FROM schema_info WHERE id = 1`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return n, nil
}

// provider reads the files. Nothing of another package's registry may end up in
// this schema.
func (m *migrator) provider() (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, m.db, m.from, goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

// target is the newest schema that this program knows.
func (m *migrator) target() (int64, error) {
	p, err := m.provider()
	if err != nil {
		return 0, err
	}
	sources := p.ListSources()
	return sources[len(sources)-1].Version, nil
}

// current is the newest migration applied; 0 = none.
func (m *migrator) current(ctx context.Context) (v int64, err error) {
	var n int
	if err := m.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&n); err != nil || n == 0 {
		return 0, err
	}
	err = m.db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1`).Scan(&v)
	return v, err
}

// allowNewer accepts a newer schema that says that this program may use it, as
// an upgrade that is rolled back leaves one.
func (m *migrator) allowNewer(ctx context.Context, current, target int64) error {
	reader, err := m.minReader(ctx)
	if err != nil || reader <= target {
		return err
	}
	return fault.Errorf(fault.Newer,
		"the database %s has schema %d, of a newer version: it needs a program that knows schema %d, and this one knows schema %d; install the newer version again, or restore a backup made before the upgrade",
		m.path, current, reader, target)
}

// compare refuses to go on with a file that was edited after it was applied: two
// databases of one version would differ.
func (m *migrator) compare(ctx context.Context, sources []*goose.Source) error {
	known, err := m.recorded(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's history: %w", err)
	}
	for _, s := range sources {
		sum, err := m.sum(s)
		if err != nil {
			return err
		}
		if was, ok := known[s.Version]; ok && was != sum {
			return fault.Errorf(fault.Internal, "migration %s is not the one that was applied to %s: use the program that made it, or a newer release", path.Base(s.Path), m.path)
		}
	}
	return nil
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

// record writes down the files that were applied; those known already stay.
func (m *migrator) record(ctx context.Context, sources []*goose.Source) error {
	known, err := m.recorded(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's history: %w", err)
	}
	for _, s := range sources {
		if known[s.Version] != "" {
			continue
		}
		sum, err := m.sum(s)
		if err != nil {
			return err
		}
		_, err = m.db.ExecContext(ctx, `INSERT INTO schema_file(version, name, sha256, applied_at) VALUES ($1, $2, $3, $4)`,
			s.Version, path.Base(s.Path), sum, m.now.UnixMilli())
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
