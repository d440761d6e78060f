package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
	"leasehold/store/maintenance"
)

// large accepts n events of 50 kB each.
func large(t testing.TB, s *Store, term channel.Term, prefix string, n int) {
	t.Helper()
	for i := range n {
		b := batch(term, fmt.Sprintf("%s-%d", prefix, i))
		b.Events[0].Body = bytes.Repeat([]byte("x"), 50_000)
		_, err := s.Accept(t.Context(), b)
		must(t, err)
	}
}

// names are the files in a folder.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// idsIn are the events of a database that nobody has open.
func idsIn(t testing.TB, path string) map[string]bool {
	t.Helper()
	s, err := OpenReader(t.Context(), path, Options{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	var ids []string
	must(t, s.db.Select(&ids, "SELECT event_id FROM event"))
	stored := map[string]bool{}
	for _, id := range ids {
		stored[id] = true
	}
	return stored
}

func TestBackup(t *testing.T) {
	t.Run("it is one sound file of its owner's, marked, without sessions and owners", func(t *testing.T) {
		s := openTest(t, Options{Name: "gw"})
		take(t, s, grant(t, s, "i"), "1", "2")
		path := filepath.Join(t.TempDir(), "copy.db")
		got, err := s.Backup(t.Context(), path)
		must(t, err)
		info, err := os.Stat(path)
		must(t, err)
		want(t, "mode", info.Mode().Perm(), fs.FileMode(0o600))
		want(t, "bytes", got.Bytes, info.Size())
		want(t, "newest event", got.Through, 2)
		want(t, "files", fmt.Sprint(names(t, filepath.Dir(path))), "[copy.db]")
		b, err := ReadBackup(t.Context(), path)
		must(t, err)
		want(t, "node", b.Node, "gw")
		want(t, "of", b.At.UnixMilli(), got.At.UnixMilli())
		want(t, "events", b.Through, 2)
		want(t, "files after a look", fmt.Sprint(names(t, filepath.Dir(path))), "[copy.db]")
		r, err := OpenReader(t.Context(), path, Options{})
		must(t, err)
		defer func() { must(t, r.Close()) }()
		must(t, quickCheck(t.Context(), path, r.db))
		var left int
		must(t, r.db.Get(&left, "SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM lease WHERE owner IS NOT NULL)"))
		want(t, "sessions and owners", left, 0)
		want(t, "sessions of the store itself", count(t, s, "session"), 1)
		var vacuum int
		must(t, r.db.Get(&vacuum, "PRAGMA auto_vacuum"))
		want(t, "auto_vacuum is kept", vacuum, 2)
	})

	t.Run("nothing is overwritten, and a folder that is not there is named", func(t *testing.T) {
		s := openTest(t, Options{})
		path := filepath.Join(t.TempDir(), "mine")
		must(t, os.WriteFile(path, []byte("precious"), 0o600))
		_, err := s.Backup(t.Context(), path)
		want(t, "kind", fault.Of(err), fault.Conflict)
		wantText(t, err, path, "not overwritten")
		_, err = s.Backup(t.Context(), s.path)
		want(t, "kind for the database itself", fault.Of(err), fault.Conflict)
		b, err := os.ReadFile(path)
		must(t, err)
		want(t, "content", string(b), "precious")
		_, err = s.Backup(t.Context(), filepath.Join(t.TempDir(), "none", "copy.db"))
		want(t, "kind without a folder", fault.Of(err), fault.ReadOnly)
	})

	t.Run("one that is cancelled leaves nothing, and the store goes on", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		large(t, s, term, "e", 200)
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // as soon as there is something to leave behind
			for ctx.Err() == nil {
				if all, _ := os.ReadDir(dir); len(all) > 0 {
					cancel()
				}
			}
		}()
		_, err := s.Backup(ctx, filepath.Join(dir, "copy.db"))
		want(t, "cancelled", errors.Is(err, context.Canceled), true)
		want(t, "files", len(names(t, dir)), 0)
		large(t, s, term, "after", 1)
		_, err = s.Backup(t.Context(), filepath.Join(dir, "copy.db"))
		must(t, err)
	})

	t.Run("what a killed one left goes with the next of its name", func(t *testing.T) {
		s := openTest(t, Options{})
		dir := t.TempDir()
		for _, name := range []string{"copy.db.1.part", "copy.db.1.part-journal", "copy.db.part.txt", "other.db.1.part"} {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		_, err := s.Backup(t.Context(), filepath.Join(dir, "copy.db"))
		must(t, err)
		want(t, "files", fmt.Sprint(names(t, dir)), "[copy.db copy.db.part.txt other.db.1.part]")
	})

	t.Run("two at once are one", func(t *testing.T) {
		s := openTest(t, Options{})
		s.copying.Lock()
		_, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db"))
		s.copying.Unlock()
		want(t, "kind", fault.Of(err), fault.Conflict)
		wantText(t, err, "under way")
	})

	t.Run("a damaged database is not copied, and never written again", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		large(t, s, term, "e", 40)
		must(t, s.EndSession(t.Context(), "session")) // an unclean stop would be checked
		must(t, s.Close())
		garble(t, s.path, 20)
		s, err := Open(t.Context(), s.path, Options{ReserveBytes: -1})
		if fault.Is(err, fault.Corrupt) {
			t.Fatalf("got %v at the start, want it open: this is about damage that nobody has seen", err)
		}
		must(t, err)
		dir := t.TempDir()
		_, err = s.Backup(t.Context(), filepath.Join(dir, "copy.db"))
		want(t, "kind", fault.Of(err), fault.Corrupt)
		wantText(t, err, s.path)
		want(t, "files", len(names(t, dir)), 0)
		want(t, "latched", fault.Of(s.broken()), fault.Corrupt)
		must(t, s.Close())
	})

	t.Run("a copy that is damaged on its way says nothing about the database", func(t *testing.T) {
		s := openTest(t, Options{})
		err := s.copyError("/x/copy.db", &damagedCopyError{"a page is wrong"})
		want(t, "kind", fault.Of(err), fault.Temporary)
		wantText(t, err, "/x", "leasehold doctor")
		must(t, s.broken())
	})
}

// garble overwrites a page in the middle of a file whose process ended well.
func garble(t testing.TB, path string, page int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, 4096), page*4096)
	must(t, errors.Join(err, f.Close()))
}

func TestBackupUnderLoad(t *testing.T) {
	t.Run("what was acknowledged before it began is in it, and commits go on", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		large(t, s, term, "before", 200) // 10 MB
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		type taken struct {
			id   string
			at   time.Time // of its acknowledgement
			took time.Duration
		}
		acked := make([][]taken, 8)
		var many atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			together(len(acked), func(w int) {
				for n := 0; ctx.Err() == nil; n++ {
					id := fmt.Sprintf("load-%d-%d", w, n)
					began := time.Now()
					if _, err := s.Accept(context.WithoutCancel(ctx), batch(term, id)); err != nil {
						t.Error(err)
						return
					}
					acked[w] = append(acked[w], taken{id, time.Now(), time.Since(began)})
					many.Add(1)
				}
			})
		}()
		loaded := time.Now()
		eventually(t, "load", func() bool { return many.Load() >= 500 })
		dir := t.TempDir()
		var copies []maintenance.Copied
		var starts []time.Time
		for n := range 3 {
			starts = append(starts, time.Now())
			got, err := s.Backup(t.Context(), filepath.Join(dir, fmt.Sprint(n)))
			must(t, err)
			copies = append(copies, got)
		}
		over := time.Now()
		stop()
		<-ended
		var slowest time.Duration
		before, during := 0, 0
		for n, c := range copies {
			stored := idsIn(t, c.Path)
			for i := range 200 {
				if id := fmt.Sprintf("before-%d", i); !stored[id] {
					t.Errorf("copy %d: %s is missing", n, id)
				}
			}
			for _, all := range acked {
				for _, e := range all {
					if e.at.Before(starts[n]) && !stored[e.id] {
						t.Errorf("copy %d: %s was acknowledged before it began, and is missing", n, e.id)
					}
				}
			}
		}
		for _, all := range acked {
			for _, e := range all {
				switch {
				case e.at.Before(starts[0]):
					before++
				case e.at.Before(over):
					during++
					slowest = max(slowest, e.took)
				}
			}
		}
		if during == 0 {
			t.Error("got no event accepted while three copies were made, want commits to go on")
		}
		perSecond := func(n int, d time.Duration) int { return int(float64(n) / d.Seconds()) }
		t.Logf("accepts a second: %d before, %d while three copies of %d MB were made in %v, %v and %v; the slowest accept meanwhile took %v",
			perSecond(before, starts[0].Sub(loaded)), perSecond(during, over.Sub(starts[0])), copies[2].Bytes>>20,
			copies[0].Took.Round(time.Millisecond), copies[1].Took.Round(time.Millisecond), copies[2].Took.Round(time.Millisecond), slowest.Round(time.Millisecond))
		must(t, quickCheck(t.Context(), s.path, s.db))
	})
}
