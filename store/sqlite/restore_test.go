package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/internal/fault"
)

// backedUp is a backup of a store with the events 1 and 2.
func backedUp(t *testing.T) string {
	t.Helper()
	s := openTest(t, Options{Name: "gw"})
	take(t, s, grant(t, s, "i"), "1", "2")
	path := filepath.Join(t.TempDir(), "backup.db")
	_, err := s.Backup(t.Context(), path)
	must(t, err)
	must(t, s.Close())
	return path
}

// other is a database with one event, closed as a killed process leaves it: with a
// log that holds the event alone.
func other(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "other.db"), Options{ReserveBytes: -1})
	must(t, err)
	take(t, s, grant(t, s, "i"), "of the other")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(s.path + suffix)
		must(t, err)
		must(t, os.WriteFile(path+suffix, b, 0o600))
	}
	must(t, s.Close())
}

func TestRestore(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	keys := func(m map[string]bool) string {
		var all []string
		for k := range m {
			all = append(all, k)
		}
		slices.Sort(all)
		return fmt.Sprint(all)
	}

	t.Run("in an empty folder it is what the backup holds, and warns at the first start", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		before, err := os.ReadFile(from)
		must(t, err)
		r, err := Restore(t.Context(), from, to, RestoreOptions{Now: now})
		must(t, err)
		want(t, "aside", r.Aside, "")
		want(t, "node", r.Node, "gw")
		want(t, "files", fmt.Sprint(names(t, filepath.Dir(to))), "[leasehold.db]")
		info, err := os.Stat(to)
		must(t, err)
		want(t, "mode", info.Mode().Perm(), fs.FileMode(0o600))
		var told strings.Builder
		s := openAt(t, to, Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
		want(t, "events", count(t, s, "event"), 2)
		want(t, "told", strings.Contains(told.String(), "from="+from) && strings.Contains(told.String(), "must be stopped"), true)
		after, err := os.ReadFile(from)
		must(t, err)
		want(t, "backup unchanged", bytes.Equal(before, after), true)
	})

	t.Run("a foreign log beside the place is moved aside, and its events are not in it", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		other(t, to)
		must(t, os.Remove(to)) // the log of a database that is gone
		log, err := os.ReadFile(to + "-wal")
		must(t, err)
		want(t, "there is a log", len(log) > 0, true)
		_, err = Restore(t.Context(), from, to, RestoreOptions{Now: now})
		must(t, err)
		want(t, "files", fmt.Sprint(names(t, filepath.Dir(to))), "[leasehold.db leasehold.db.replaced-20261130T090000Z-wal]")
		s := openAt(t, to, Options{})
		must(t, quickCheck(t.Context(), to, s.db))
		want(t, "events", count(t, s, "event"), 2)
		kept, err := os.ReadFile(to + ".replaced-20261130T090000Z-wal")
		must(t, err)
		want(t, "log kept", bytes.Equal(kept, log), true)
	})

	t.Run("a database is replaced only when told, and moved aside with its log", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		other(t, to)
		before := contents(t, to)
		_, err := Restore(t.Context(), from, to, RestoreOptions{Now: now})
		want(t, "kind", fault.Of(err), fault.Conflict)
		wantText(t, err, to, "--replace")
		want(t, "unchanged", contents(t, to), before)
		r, err := Restore(t.Context(), from, to, RestoreOptions{Now: now, Replace: true})
		must(t, err)
		want(t, "aside", r.Aside, to+".replaced-20261130T090000Z")
		want(t, "events of the one aside", keys(idsIn(t, r.Aside)), "[of the other]")
		want(t, "events", count(t, openAt(t, to, Options{}), "event"), 2)
	})

	t.Run("two that are replaced in one second are both kept", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		must(t, os.WriteFile(to, []byte("the first"), 0o600))
		one, err := Restore(t.Context(), from, to, RestoreOptions{Now: now, Replace: true})
		must(t, err)
		two, err := Restore(t.Context(), from, to, RestoreOptions{Now: now, Replace: true})
		must(t, err)
		want(t, "another name", two.Aside, one.Aside+"-2")
		b, err := os.ReadFile(one.Aside)
		must(t, err)
		want(t, "the first", string(b), "the first")
	})

	t.Run("a damaged database is replaced, and kept", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		must(t, os.WriteFile(to, []byte("what is left of it"), 0o600))
		r, err := Restore(t.Context(), from, to, RestoreOptions{Replace: true})
		must(t, err)
		b, err := os.ReadFile(r.Aside)
		must(t, err)
		want(t, "kept", string(b), "what is left of it")
		want(t, "events", count(t, openAt(t, to, Options{}), "event"), 2)
	})

	t.Run("an empty file in its place is none", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		must(t, os.WriteFile(to, nil, 0o600))
		_, err := Restore(t.Context(), from, to, RestoreOptions{})
		must(t, err)
		want(t, "events", count(t, openAt(t, to, Options{}), "event"), 2)
	})

	t.Run("while a process has it, nothing is touched", func(t *testing.T) {
		from := backedUp(t)
		s := openTest(t, Options{})
		take(t, s, grant(t, s, "i"), "mine")
		before := contents(t, s.path)
		_, err := Restore(t.Context(), from, s.path, RestoreOptions{Replace: true})
		want(t, "kind", fault.Of(err), fault.Busy)
		var locked *LockedError
		want(t, "says who", errors.As(err, &locked), true)
		want(t, "unchanged", contents(t, s.path), before)
		want(t, "events", count(t, s, "event"), 1)
	})

	t.Run("what is no sound backup of ours is refused, and the place stays as it was", func(t *testing.T) {
		good := backedUp(t)
		file := func(t *testing.T, b []byte) string {
			t.Helper()
			path := filepath.Join(t.TempDir(), "x.db")
			must(t, os.WriteFile(path, b, 0o600))
			return path
		}
		read := func(t *testing.T) []byte {
			t.Helper()
			b, err := os.ReadFile(good)
			must(t, err)
			return b
		}
		foreign := func(t *testing.T, statements ...string) string {
			t.Helper()
			path := file(t, nil)
			db, err := sql.Open("sqlite", dsn(path, dsnCopy))
			must(t, err)
			for _, s := range statements {
				_, err := db.ExecContext(t.Context(), s)
				must(t, err)
			}
			must(t, db.Close())
			return path
		}
		for name, c := range map[string]struct {
			from func(t *testing.T) string
			kind fault.Kind
			word string
		}{
			"it is not there":   {func(t *testing.T) string { return filepath.Join(t.TempDir(), "none.db") }, fault.NotFound, "there is no file"},
			"it is a folder":    {func(t *testing.T) string { return t.TempDir() }, fault.Invalid, "is not a file"},
			"it is empty":       {func(t *testing.T) string { return file(t, nil) }, fault.Invalid, "nothing of ours"},
			"it is a text":      {func(t *testing.T) string { return file(t, []byte("hello")) }, fault.Corrupt, "not a backup"},
			"it is cut":         {func(t *testing.T) string { b := read(t); return file(t, b[:len(b)/2]) }, fault.Corrupt, "damaged"},
			"a page is garbled": {func(t *testing.T) string { p := file(t, read(t)); garble(t, p, 12); return p }, fault.Corrupt, "damaged"},
			"a page that only a whole reading finds is garbled": {func(t *testing.T) string { p := file(t, read(t)); garble(t, p, 15); return p }, fault.Corrupt, "damaged"},
			"it is another program's": {func(t *testing.T) string {
				return foreign(t, "PRAGMA application_id = 7", "CREATE TABLE a (b)")
			}, fault.Invalid, "another program"},
			"it is anybody's": {func(t *testing.T) string { return foreign(t, "CREATE TABLE a (b)") }, fault.Invalid, "nothing of ours"},
			"it is newer": {func(t *testing.T) string {
				p := file(t, read(t))
				db, err := sql.Open("sqlite", dsn(p, dsnCopy))
				must(t, err)
				_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version(version_id, is_applied) VALUES (9000, 1); UPDATE schema_info SET min_reader = 9000")
				must(t, errors.Join(err, db.Close()))
				return p
			}, fault.Newer, "newer version"},
			"a process has it open": {func(t *testing.T) string {
				s := openTest(t, Options{})
				take(t, s, grant(t, s, "i"), "1")
				return s.path
			}, fault.Invalid, "leasehold backup"},
		} {
			t.Run(name, func(t *testing.T) {
				to := filepath.Join(t.TempDir(), "leasehold.db")
				from := c.from(t)
				_, err := Restore(t.Context(), from, to, RestoreOptions{})
				want(t, "kind", fault.Of(err), c.kind)
				wantText(t, err, c.word, from)
				want(t, "only that is told", strings.Contains(err.Error(), "remove"), false)
				want(t, "files", len(names(t, filepath.Dir(to))), 0)
				other(t, to)
				before, files := contents(t, to), fmt.Sprint(names(t, filepath.Dir(to)))
				_, err = Restore(t.Context(), from, to, RestoreOptions{Replace: true})
				want(t, "kind over a database", fault.Of(err), c.kind)
				want(t, "database", contents(t, to), before)
				want(t, "files beside a database", fmt.Sprint(names(t, filepath.Dir(to))), files)
			})
		}
	})

	t.Run("what killed ones left goes with the next restore, and with the next start", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		leave := func() {
			for _, name := range []string{".1.part", ".234.part", ".234.part-journal", ".5.part-wal", ".mine.part", ".copy.6.part"} {
				must(t, os.WriteFile(to+name, []byte("half of it"), 0o600))
			}
		}
		left := "[leasehold.db leasehold.db.copy.6.part leasehold.db.mine.part]"
		leave()
		_, err := Restore(t.Context(), from, to, RestoreOptions{})
		must(t, err)
		want(t, "files after a restore", fmt.Sprint(names(t, filepath.Dir(to))), left)
		leave()
		s, err := Open(t.Context(), to, Options{ReserveBytes: -1})
		must(t, err)
		_, err = Restore(t.Context(), from, to, RestoreOptions{Replace: true})
		want(t, "kind while it is open", fault.Of(err), fault.Busy)
		must(t, s.Close())
		want(t, "files after a start", fmt.Sprint(names(t, filepath.Dir(to))), left)
	})

	t.Run("one that is cancelled leaves the place as it was", func(t *testing.T) {
		from, to := backedUp(t), filepath.Join(t.TempDir(), "leasehold.db")
		other(t, to)
		before := contents(t, to)
		ctx, cancel := context.WithCancel(t.Context())
		r := Restored{To: to}
		var err error
		r.Backup, err = ReadBackup(ctx, from)
		must(t, err)
		cancel()
		err = r.put(ctx, at, true, false)
		want(t, "cancelled", errors.Is(err, context.Canceled), true)
		want(t, "unchanged", contents(t, to), before)
	})

	t.Run("a copy made by other means is refused, and taken as what it is when told", func(t *testing.T) {
		s := openTest(t, Options{})
		take(t, s, grant(t, s, "i"), "1")
		must(t, s.Close()) // its session is left, as a kill leaves it
		from := filepath.Join(t.TempDir(), "cp.db")
		b, err := os.ReadFile(s.path)
		must(t, err)
		must(t, os.WriteFile(from, b, 0o600))
		to := filepath.Join(t.TempDir(), "leasehold.db")
		_, err = Restore(t.Context(), from, to, RestoreOptions{})
		want(t, "kind", fault.Of(err), fault.Invalid)
		wantText(t, err, from, "-wal", "leasehold backup", "--plain-copy")
		want(t, "files", len(names(t, filepath.Dir(to))), 0)
		done, err := Restore(t.Context(), from, to, RestoreOptions{PlainCopy: true})
		must(t, err)
		want(t, "plain", done.Plain, true)
		want(t, "says no time", done.At.IsZero(), true)
		again := filepath.Join(t.TempDir(), "again.db")
		_, err = Restore(t.Context(), to, again, RestoreOptions{}) // nobody has started from it yet
		want(t, "kind of a copy of it", fault.Of(err), fault.Invalid)
		var told strings.Builder
		r := openAt(t, to, Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
		want(t, "told", strings.Contains(told.String(), "must be stopped") && strings.Contains(told.String(), "a plain copy"), true)
		want(t, "sessions", count(t, r, "session"), 0)
		want(t, "an id of its own", r.id != s.id, true)
	})
}
