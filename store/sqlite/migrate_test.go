package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"leasehold/internal/fault"
)

func TestMigrate(t *testing.T) {
	first, err := fs.ReadFile(migrations(), "0001_first.sql")
	must(t, err)
	const second = "-- +goose Up\nCREATE TABLE later (a INTEGER) STRICT;\nUPDATE schema_info SET min_reader = %d;\n"
	files := func(reader int) fstest.MapFS {
		return fstest.MapFS{
			"0001_first.sql": {Data: first}, "0002_later.sql": {Data: fmt.Appendf(nil, second, reader)},
		}
	}
	// upgrade brings a database to the schema of from, as a newer program would.
	upgrade := func(t *testing.T, path string, from fs.FS) error {
		t.Helper()
		db, err := sql.Open("sqlite", dsn(path, dsnWrite))
		must(t, err)
		db.SetMaxOpenConns(1)
		m := &migrator{db: db, path: path, from: from, now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), log: slog.New(slog.DiscardHandler)}
		return errors.Join(m.run(t.Context()), db.Close())
	}
	made := func(t *testing.T) string {
		t.Helper()
		s := openTest(t, Options{})
		take(t, s, grant(t, s, "i"), "1")
		must(t, s.EndSession(t.Context(), "session"))
		must(t, s.Close())
		return s.path
	}

	t.Run("an upgrade copies a database that is not new first", func(t *testing.T) {
		path := made(t)
		must(t, upgrade(t, path, files(1)))
		copied := openAt(t, path+".schema1-20261130T090000Z", Options{}) // a sound database of the old schema
		want(t, "events in the copy", count(t, copied, "event"), 1)
		info, err := os.Stat(copied.path)
		must(t, err)
		want(t, "mode", info.Mode().Perm(), fs.FileMode(0o600))
		all, err := filepath.Glob(path + ".schema*Z")
		must(t, err)
		must(t, upgrade(t, path, files(1)))
		again, err := filepath.Glob(path + ".schema*Z")
		must(t, err)
		want(t, "copies when there is nothing to do", len(again), len(all))
	})
	t.Run("a new database is not copied", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.db")
		must(t, makeWAL(t.Context(), path))
		must(t, upgrade(t, path, files(1)))
		all, err := filepath.Glob(path + ".schema*")
		must(t, err)
		want(t, "copies", len(all), 0)
	})
	t.Run("a newer schema that does not know this program is refused", func(t *testing.T) {
		path := made(t)
		must(t, upgrade(t, path, files(2)))
		before, err := os.ReadFile(path)
		must(t, err)
		_, err = Open(t.Context(), path, Options{ReserveBytes: -1})
		want(t, "kind", fault.Of(err), fault.Newer)
		want(t, "exit code", fault.ExitCode(err), fault.ExitConfig)
		wantText(t, err, path, "schema 2", "install the newer version")
		_, err = OpenReader(t.Context(), path, Options{})
		want(t, "kind for a reader", fault.Of(err), fault.Newer)
		after, err := os.ReadFile(path)
		must(t, err)
		want(t, "bytes unchanged", bytes.Equal(before, after), true)
	})
	t.Run("a newer schema that this program may use is used", func(t *testing.T) {
		path := made(t)
		must(t, upgrade(t, path, files(1)))
		s := openAt(t, path, Options{})
		want(t, "events", count(t, s, "event"), 1)
	})
	t.Run("a migration that was edited after it was applied is refused", func(t *testing.T) {
		path := made(t)
		edited := files(1)
		edited["0001_first.sql"].Data = append(edited["0001_first.sql"].Data, "-- edited\n"...)
		wantText(t, upgrade(t, path, edited), "0001_first.sql", "not the one that was applied")
	})
	t.Run("a migration that fails leaves the schema before it", func(t *testing.T) {
		path := made(t)
		broken := files(1)
		broken["0002_later.sql"].Data = []byte("-- +goose Up\nCREATE TABLE later (a INTEGER) STRICT;\nCREATE TABLE later (a INTEGER) STRICT;\n")
		wantText(t, upgrade(t, path, broken), "upgrade the schema from 1 to")
		want(t, "events", count(t, openAt(t, path, Options{}), "event"), 1)
	})
	t.Run("a restored copy gets its log back", func(t *testing.T) {
		path := made(t)
		copied := filepath.Join(t.TempDir(), "restored.db")
		db, err := sql.Open("sqlite", dsn(path, dsnBase))
		must(t, err)
		must(t, errors.Join(vacuumInto(t.Context(), db, copied), db.Close()))
		s := openAt(t, copied, Options{})
		var mode string
		must(t, s.db.Get(&mode, "PRAGMA journal_mode"))
		want(t, "journal mode", mode, "wal")
	})
}
