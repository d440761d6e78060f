package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		_, again := r.RedeliverDeliveries(t.Context(), nil)
		_, drop := r.DropDeliveries(t.Context(), nil)
		for _, err := range []error{
			put, reconcile, replay, again, drop, r.SetEnabled(t.Context(), "i", false), r.RemoveInstallation(t.Context(), "i"), r.SaveTaskRun(t.Context(), admin.TaskRun{}),
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
