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
	ours, err := fs.Glob(migrations(), "*.sql")
	must(t, err)
	now := len(ours) // this program's schema: numbers have no gaps
	later := fmt.Sprintf("%04d_later.sql", now+1)
	const upgraded = "-- +goose Up\nCREATE TABLE later (a INTEGER) STRICT;\nUPDATE schema_info SET min_reader = %d;\n"
	files := func(reader int) fstest.MapFS {
		all := fstest.MapFS{later: {Data: fmt.Appendf(nil, upgraded, reader)}}
		for _, name := range ours {
			data, err := fs.ReadFile(migrations(), name)
			must(t, err)
			all[name] = &fstest.MapFile{Data: data}
		}
		return all
	}
	// upgrade brings a database to the schema of from, as a newer program would.
	upgrade := func(t *testing.T, path string, from fs.FS) error {
		t.Helper()
		db, err := sql.Open("sqlite", dsn(path, dsnWrite))
		must(t, err)
		db.SetMaxOpenConns(1)
		m, err := newMigrator(db, path, from)
		must(t, err)
		m.now, m.log = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), slog.New(slog.DiscardHandler)
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
		must(t, upgrade(t, path, files(now)))
		copied := openAt(t, fmt.Sprintf("%s.schema%d-20261130T090000Z", path, now), Options{}) // a sound database of the old schema
		want(t, "events in the copy", count(t, copied, "event"), 1)
		info, err := os.Stat(copied.path)
		must(t, err)
		want(t, "mode", info.Mode().Perm(), fs.FileMode(0o600))
		all, err := filepath.Glob(path + ".schema*Z")
		must(t, err)
		must(t, upgrade(t, path, files(now)))
		again, err := filepath.Glob(path + ".schema*Z")
		must(t, err)
		want(t, "copies when there is nothing to do", len(again), len(all))
	})
	t.Run("a new database is not copied", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.db")
		must(t, makeWAL(t.Context(), path))
		must(t, upgrade(t, path, files(now)))
		all, err := filepath.Glob(path + ".schema*")
		must(t, err)
		want(t, "copies", len(all), 0)
	})
	t.Run("a newer schema that does not know this program is refused", func(t *testing.T) {
		path := made(t)
		must(t, upgrade(t, path, files(now+1)))
		before, err := os.ReadFile(path)
		must(t, err)
		_, err = Open(t.Context(), path, Options{ReserveBytes: -1})
		want(t, "kind", fault.Of(err), fault.Newer)
		want(t, "exit code", fault.ExitCode(err), fault.ExitConfig)
		wantText(t, err, path, fmt.Sprint("schema ", now+1), "install the newer version")
		_, err = OpenReader(t.Context(), path, Options{})
		want(t, "kind for a reader", fault.Of(err), fault.Newer)
		after, err := os.ReadFile(path)
		must(t, err)
		want(t, "bytes unchanged", bytes.Equal(before, after), true)
	})
	t.Run("a newer schema that this program may use is used", func(t *testing.T) {
		path := made(t)
		must(t, upgrade(t, path, files(now)))
		s := openAt(t, path, Options{})
		want(t, "events", count(t, s, "event"), 1)
	})
	t.Run("a migration that was edited after it was applied is refused", func(t *testing.T) {
		path := made(t)
		edited := files(now)
		edited["0001_first.sql"].Data = append(edited["0001_first.sql"].Data, "-- edited\n"...)
		wantText(t, upgrade(t, path, edited), "0001_first.sql", "not the one that was applied")
	})
	t.Run("a migration that fails leaves the schema before it", func(t *testing.T) {
		path := made(t)
		broken := files(now)
		broken[later].Data = []byte("-- +goose Up\nCREATE TABLE later (a INTEGER) STRICT;\nCREATE TABLE later (a INTEGER) STRICT;\n")
		wantText(t, upgrade(t, path, broken), fmt.Sprintf("upgrade the schema to %d", now+1))
		want(t, "events", count(t, openAt(t, path, Options{}), "event"), 1)
	})
	t.Run("a database of the first schema is brought up to date with what is in it, and may still be used by its program", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "first.db")
		must(t, makeWAL(t.Context(), path))
		must(t, upgrade(t, path, fstest.MapFS{ours[0]: files(now)[ours[0]]}))
		db, err := sql.Open("sqlite", dsn(path, dsnWrite))
		must(t, err)
		_, err = db.ExecContext(t.Context(), `INSERT INTO event(installation_id, lease_id, event_id, epoch, owner, type, conversation, thread, occurred_at, accepted_at, body)
VALUES ('i', 'i', '1', 1, 's', 'message', '', '', 0, 0, x'7b7d')`)
		must(t, errors.Join(err, db.Close()))
		s := openAt(t, path, Options{})
		want(t, "events", count(t, s, "event"), 1)
		want(t, "messages", count(t, s, "message"), 0)
		var reader int
		must(t, s.db.Get(&reader, "SELECT min_reader FROM schema_info"))
		want(t, "the oldest reader", reader, 1)
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
