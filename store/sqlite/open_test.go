package sqlite

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/internal/identity"
)

func TestOpen(t *testing.T) {
	t.Run("every connection has every setting", func(t *testing.T) {
		s := openTest(t, Options{})
		// What each must answer: from the settings, or from the file they were made with.
		both := map[string]string{
			"busy_timeout": "5000", "foreign_keys": "1", "synchronous": "2", "temp_store": "2", "wal_autocheckpoint": "1000",
			"journal_size_limit": "16777216", "journal_mode": "wal", "auto_vacuum": "2", "application_id": "1280526404",
		}
		for name, wanted := range both {
			var written, read string
			must(t, s.c.outside(t.Context(), func(w *writer) error { return w.get("PRAGMA "+name, nil, &written) }))
			must(t, s.db.Get(&read, "PRAGMA "+name))
			want(t, "writer's "+name, written, wanted)
			want(t, "reader's "+name, read, wanted)
		}
		var written, read int
		must(t, s.c.outside(t.Context(), func(w *writer) error { return w.get("PRAGMA query_only", nil, &written) }))
		must(t, s.db.Get(&read, "PRAGMA query_only"))
		want(t, "writer's query_only", written, 0)
		want(t, "reader's query_only", read, 1)
		_, err := s.db.ExecContext(t.Context(), "DELETE FROM event")
		want(t, "a reader cannot write", fault.Of(classify(s.path, err)), fault.ReadOnly)
		_, err = s.db.ExecContext(t.Context(), `SELECT "no such column"`)
		want(t, "a quoted typo is an error, not a text", err != nil, true)
		err = s.c.do(t.Context(), func(w *writer) error {
			_, err := w.exec("PRAGMA writable_schema = 1")
			if err == nil {
				_, err = w.exec("DELETE FROM sqlite_schema")
			}
			return err
		})
		want(t, "the schema cannot be written by hand", err != nil, true)
		want(t, "connections that write", s.c.w.pool.Stats().MaxOpenConnections, 1)
		want(t, "connections that read, with the one kept", s.db.Stats().MaxOpenConnections, 5)
	})

	t.Run("a typo in a setting is an error", func(t *testing.T) {
		for _, setting := range []string{"_synchronous=FULL", "_journal_mode=WAL", "_foreign_keys=1", "_busy_timeout=5000", "_auto_vacuum=2", "_dqs=0", "_defensive=1", "_txlock=immediate"} {
			settings := strings.Replace(dsnCreate, setting, setting+"x", 1)
			want(t, setting+" is set", settings != dsnCreate, true)
			db, err := sql.Open("sqlite", dsn(filepath.Join(t.TempDir(), "x.db"), settings))
			must(t, err)
			if err := db.PingContext(t.Context()); err == nil {
				t.Errorf("%sx: got no error, want one", setting)
			}
			must(t, db.Close())
		}
	})

	t.Run("any path will do", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), `a?b#c%20d é "'&=`)
		must(t, os.Mkdir(dir, 0o700))
		s := openAt(t, filepath.Join(dir, "x?mode=ro.db"), Options{})
		take(t, s, grant(t, s, "i"), "1")
		_, err := os.Stat(filepath.Join(dir, "x?mode=ro.db"))
		must(t, err)
	})

	t.Run("all files are their owner's alone", func(t *testing.T) {
		s := openTest(t, Options{ReserveBytes: 4096, DataDir: t.TempDir()})
		take(t, s, grant(t, s, "i"), "1")
		for _, path := range []string{s.path, s.path + "-wal", s.path + "-shm", s.path + ".owner", s.path + ".reserve", filepath.Join(s.opt.DataDir, "instance.json")} {
			info, err := os.Stat(path)
			must(t, err)
			want(t, "mode of "+path, info.Mode().Perm(), fs.FileMode(0o600))
		}
	})

	t.Run("a closed store leaves one file, and what was in it", func(t *testing.T) {
		s := openTest(t, Options{})
		take(t, s, grant(t, s, "i"), "1", "2")
		must(t, s.Close())
		files, err := filepath.Glob(s.path + "*")
		must(t, err)
		want(t, "files", len(files), 1)
		if _, err := s.Accept(t.Context(), engine.AcceptRequest{}); !errors.Is(err, errClosed) {
			t.Errorf("accept after the end: got %v, want that the store is closed", err)
		}
		if _, err := s.Claim(t.Context(), "a", nil); !errors.Is(err, errClosed) {
			t.Errorf("claim after the end: got %v, want that the store is closed", err)
		}
		want(t, "events", count(t, openAt(t, s.path, Options{}), "event"), 2)
	})

	t.Run("a folder that is not there is named with the fix", func(t *testing.T) {
		_, err := Open(t.Context(), filepath.Join(t.TempDir(), "no", "x.db"), Options{})
		want(t, "kind", fault.Of(err), fault.ReadOnly)
		wantText(t, err, "no/x.db", "node.data_dir")
	})

	t.Run("what is no file is refused", func(t *testing.T) {
		_, err := Open(t.Context(), t.TempDir(), Options{})
		want(t, "kind", fault.Of(err), fault.Invalid)
	})
}

func TestLostStore(t *testing.T) {
	begin := func(t *testing.T) *Store {
		s := openTest(t, Options{DataDir: t.TempDir()})
		grant(t, s, "i")
		must(t, s.Close())
		return s
	}
	refused := func(t *testing.T, s *Store) {
		t.Helper()
		_, err := Open(t.Context(), s.path, Options{DataDir: s.opt.DataDir, ReserveBytes: -1})
		want(t, "kind", fault.Of(err), fault.Gone)
		wantText(t, err, s.path, "restore a backup", "--new-store")
	}
	t.Run("a store is remembered by its data folder", func(t *testing.T) {
		s := begin(t)
		id, err := identity.Load(s.opt.DataDir)
		must(t, err)
		var store string
		must(t, openAt(t, s.path, Options{}).db.Get(&store, "SELECT store_id FROM schema_info"))
		want(t, "store", id.Store, store)
	})
	t.Run("an absent database is not begun anew in silence", func(t *testing.T) {
		s := begin(t)
		must(t, os.Remove(s.path))
		refused(t, s)
		_, err := os.Stat(s.path)
		want(t, "nothing was made", errors.Is(err, fs.ErrNotExist), true)
	})
	t.Run("nor is an empty one", func(t *testing.T) {
		s := begin(t)
		must(t, os.Truncate(s.path, 0))
		refused(t, s)
		refused(t, s) // the lock was given up
		info, err := os.Stat(s.path)
		must(t, err)
		want(t, "size", info.Size(), 0)
	})
	t.Run("unless a new one is asked for, which is then remembered", func(t *testing.T) {
		s := begin(t)
		must(t, os.Remove(s.path))
		must(t, openAt(t, s.path, Options{DataDir: s.opt.DataDir, NewStore: true}).Close())
		must(t, openAt(t, s.path, Options{DataDir: s.opt.DataDir}).Close())
		must(t, os.Remove(s.path))
		refused(t, s)
	})
	t.Run("at rest nothing of it is written again", func(t *testing.T) {
		s := begin(t)
		path := filepath.Join(s.opt.DataDir, "instance.json")
		before, err := os.Stat(path)
		must(t, err)
		must(t, openAt(t, s.path, Options{DataDir: s.opt.DataDir}).Close())
		after, err := os.Stat(path)
		must(t, err)
		want(t, "same file", os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()), true)
	})
}

func TestDamage(t *testing.T) {
	// damaged makes a database with events, ends it as a crash does, and changes its
	// bytes.
	damaged := func(t *testing.T, change func(b []byte) []byte) string {
		t.Helper()
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		for n := range 40 {
			r := batch(term, fmt.Sprint(n))
			r.Events[0].Body = bytes.Repeat([]byte("x"), 2000)
			_, err := s.Accept(t.Context(), r)
			must(t, err)
		}
		must(t, s.Close())
		b, err := os.ReadFile(s.path)
		must(t, err)
		must(t, os.WriteFile(s.path, change(b), 0o600))
		return s.path
	}
	for name, change := range map[string]func(b []byte) []byte{
		"garbage":      func(b []byte) []byte { return bytes.Repeat([]byte("garbage "), len(b)/8) },
		"a short file": func([]byte) []byte { return []byte("SQLite") },
		"a garbled header": func(b []byte) []byte {
			return append(append([]byte{}, b[:16]...), bytes.Repeat([]byte{0xA5}, len(b)-16)...)
		},
		"a garbled page":       func(b []byte) []byte { copy(b[len(b)-3*4096:], bytes.Repeat([]byte{0xA5}, 4096)); return b },
		"a truncated file":     func(b []byte) []byte { return b[:len(b)/2] },
		"a file cut in a page": func(b []byte) []byte { return b[:len(b)-4096-100] },
	} {
		t.Run("is named with what to do, and nothing is overwritten: "+name, func(t *testing.T) {
			path := damaged(t, change)
			before, err := os.ReadFile(path)
			must(t, err)
			_, err = Open(t.Context(), path, Options{ReserveBytes: -1})
			if k := fault.Of(err); k != fault.Corrupt && k != fault.Invalid {
				t.Errorf("got %v (%v), want a damaged database, or one that is not ours", err, k)
			}
			wantText(t, err, path)
			if fault.Is(err, fault.Corrupt) {
				wantText(t, err, "damaged", "restore a backup")
			}
			after, err := os.ReadFile(path)
			must(t, err)
			want(t, "bytes unchanged", bytes.Equal(before, after), true)
		})
	}

	t.Run("its log stays beside it, unfolded, when the process before was killed", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		for n := range 40 {
			take(t, s, term, fmt.Sprint(n))
		}
		must(t, s.c.outside(t.Context(), checkpoint))
		take(t, s, term, "in the log alone")
		dead := filepath.Join(t.TempDir(), "leasehold.db") // as a kill would leave it
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(s.path + suffix)
			must(t, err)
			if suffix == "" {
				copy(b[4096:], bytes.Repeat([]byte{0xA5}, len(b)))
			}
			must(t, os.WriteFile(dead+suffix, b, 0o600))
		}
		before := contents(t, dead)
		_, err := Open(t.Context(), dead, Options{ReserveBytes: -1})
		want(t, "kind", fault.Of(err), fault.Corrupt)
		want(t, "database and log unchanged", contents(t, dead), before)
	})

	t.Run("found while it works, it is closed without folding the log into it", func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), Options{ReserveBytes: -1})
		must(t, err)
		take(t, s, grant(t, s, "i"), "1")
		_ = s.judge(corruptError(s.path, errors.New("a page is wrong"))) // as a statement would find it
		before := contents(t, s.path)
		must(t, s.Close())
		want(t, "database and log unchanged", contents(t, s.path), before)
	})

	t.Run("found while it works, it ends all writing for ever", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		take(t, s, term, "1")
		_ = s.judge(corruptError(s.path, errors.New("a page is wrong"))) // as a statement would find it
		for what, err := range map[string]error{
			"accept": func() error { _, err := s.Accept(t.Context(), batch(term, "2")); return err }(),
			"probe":  s.Probe(t.Context()),
			"list":   func() error { _, err := s.List(t.Context(), 0); return err }(),
			"upkeep": func() error { _, err := s.Upkeep(t.Context()); return err }(),
			"admin":  s.SetEnabled(t.Context(), "i", false),
			"claim":  func() error { _, err := s.Claim(t.Context(), "session", []string{"i"}); return err }(),
		} {
			want(t, what, fault.Of(err), fault.Corrupt)
			want(t, what+" means the store", fault.Store(err), true)
		}
		want(t, "events", count(t, s, "event"), 1)
	})

	t.Run("the weekly reading finds it", func(t *testing.T) {
		now := time.Now()
		s := openTest(t, Options{Now: func() time.Time { return now }})
		got, err := s.Upkeep(t.Context())
		must(t, err)
		want(t, "checked at once", got.Checked, false)
		now = now.Add(checkEvery)
		got, err = s.Upkeep(t.Context())
		must(t, err)
		want(t, "checked after a week", got.Checked, true)
		got, err = s.Upkeep(t.Context())
		must(t, err)
		want(t, "checked again", got.Checked, false)
	})

	t.Run("an unclean stop is told by the session that was left", func(t *testing.T) {
		s := openTest(t, Options{})
		grant(t, s, "i")
		left, err := sessionLeft(t.Context(), s.db.DB)
		must(t, err)
		want(t, "left", left, true)
		must(t, s.EndSession(t.Context(), "session"))
		left, err = sessionLeft(t.Context(), s.db.DB)
		must(t, err)
		want(t, "left after its end", left, false)
	})
}

// contents are the bytes of a database and of its log.
func contents(t testing.TB, path string) (all string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, err)
		all += fmt.Sprintf("%d bytes of %s %x\n", len(b), suffix, sha256.Sum256(b))
	}
	return all
}

func TestForeignDatabase(t *testing.T) {
	t.Run("another program's database is refused and left alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other.db")
		db, err := sql.Open("sqlite", "file:"+path)
		must(t, err)
		_, err = db.ExecContext(t.Context(), "PRAGMA application_id = 252006673; CREATE TABLE t (a)")
		must(t, err)
		must(t, db.Close())
		before, err := os.ReadFile(path)
		must(t, err)
		_, err = Open(t.Context(), path, Options{})
		want(t, "kind", fault.Of(err), fault.Invalid)
		wantText(t, err, "another program", "store.url")
		after, err := os.ReadFile(path)
		must(t, err)
		want(t, "bytes unchanged", bytes.Equal(before, after), true)
	})
	t.Run("one without a mark but with tables, too", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other.db")
		db, err := sql.Open("sqlite", "file:"+path)
		must(t, err)
		_, err = db.ExecContext(t.Context(), "CREATE TABLE t (a)")
		must(t, err)
		must(t, db.Close())
		_, err = Open(t.Context(), path, Options{})
		want(t, "kind", fault.Of(err), fault.Invalid)
	})
}

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

func TestReader(t *testing.T) {
	t.Run("it reads beside the owner what was committed, and refuses to write", func(t *testing.T) {
		s := openTest(t, Options{Name: "owner"})
		term := grant(t, s, "i")
		r, err := OpenReader(t.Context(), s.path, Options{})
		must(t, err)
		defer func() { must(t, r.Close()) }()
		take(t, s, term, "1")
		events, err := r.Events(t.Context(), admin.EventQuery{})
		must(t, err)
		want(t, "events", len(events), 1)
		one, err := r.Installation(t.Context(), "i")
		must(t, err)
		_, put := r.PutInstallation(t.Context(), one, one.Revision)
		_, _, _, reconcile := r.Reconcile(t.Context(), nil)
		_, replay := r.ReplayDeliveries(t.Context(), nil)
		_, drop := r.DropDeliveries(t.Context(), nil)
		for _, err := range []error{
			put, reconcile, replay, drop, r.SetEnabled(t.Context(), "i", false), r.RemoveInstallation(t.Context(), "i"), r.SaveTaskRun(t.Context(), admin.TaskRun{}),
		} {
			want(t, "busy", fault.Is(err, fault.Busy), true)
			wantText(t, err, fmt.Sprintf("process %d", os.Getpid()))
		}
	})
	t.Run("it makes nothing where there is nothing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.db")
		_, err := OpenReader(t.Context(), path, Options{})
		want(t, "kind", fault.Of(err), fault.NotFound)
		_, err = os.Stat(path)
		want(t, "made", errors.Is(err, fs.ErrNotExist), true)
		must(t, os.WriteFile(path, nil, 0o600))
		_, err = OpenReader(t.Context(), path, Options{})
		want(t, "kind of an empty one", fault.Of(err), fault.NotFound)
	})
}
