package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store/maintenance"
)

// acceptUntil accepts large events until one is refused, and returns how many
// were taken and the refusal.
func acceptUntil(t *testing.T, s *Store, r engine.AcceptRequest) (taken int, err error) {
	t.Helper()
	for n := range 100_000 {
		b := batch(r.Term, fmt.Sprintf("fill-%d-%d", time.Now().UnixNano(), n))
		b.Events[0].Body = []byte(strings.Repeat("x", 50_000))
		if _, err := s.Accept(t.Context(), b); err != nil {
			return taken, err
		}
		taken++
	}
	t.Fatal("the disk does not fill")
	return 0, nil
}

// occupy fills the rest of the file system with a file of its own.
func occupy(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "somebody else's")
	f, err := os.Create(path)
	must(t, err)
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must(t, f.Close())
	return path
}

func TestFullDisk(t *testing.T) {
	alone(t, func(t *testing.T) {
		t.Run("what is refused is not stored, what is stored was not refused, and room is enough to go on", func(t *testing.T) {
			dir := tmpfs(t, "48m")
			const reserve = 8 << 20
			s := openAt(t, filepath.Join(dir, "leasehold.db"), Options{ReserveBytes: reserve})
			want(t, "reserve", sizeOf(s.reservePath()), reserve)
			term := grant(t, s, "i")
			theirs := occupy(t, dir)
			taken, err := acceptUntil(t, s, engine.AcceptRequest{Term: term})
			want(t, "kind", fault.Of(err), fault.Full)
			wantText(t, err, "full", "free some space")
			want(t, "events", count(t, s, "event"), taken)
			want(t, "full", s.Full(), true)
			_, err = s.Accept(t.Context(), batch(term, "small"))
			want(t, "a small event is refused, too", fault.Of(err), fault.Full)

			// The reserve is for tidying up, not for events.
			want(t, "probe", fault.Of(s.Probe(t.Context())), fault.Full)
			want(t, "reserve given up", sizeOf(s.reservePath()), 0)
			_, err = s.Accept(t.Context(), batch(term, "small"))
			want(t, "still refused", fault.Of(err), fault.Full)
			want(t, "events still", count(t, s, "event"), taken)
			must(t, s.SetEnabled(t.Context(), "i", false)) // what else must be written has room now
			must(t, quickCheck(t.Context(), s.path, s.db))

			must(t, os.Remove(theirs))
			must(t, s.Probe(t.Context()))
			want(t, "full with room", s.Full(), false)
			take(t, s, term, "afterwards")
			want(t, "events after", count(t, s, "event"), taken+1)
			_, err = s.Upkeep(t.Context())
			must(t, err)
			want(t, "reserve made again", sizeOf(s.reservePath()), reserve)
		})

		t.Run("a volume too small for a reserve goes on by itself, too", func(t *testing.T) {
			dir := tmpfs(t, "20m")
			s := openAt(t, filepath.Join(dir, "leasehold.db"), Options{})
			want(t, "reserve", sizeOf(s.reservePath()), 0)
			term := grant(t, s, "i")
			theirs := occupy(t, dir)
			_, err := acceptUntil(t, s, engine.AcceptRequest{Term: term})
			want(t, "kind", fault.Of(err), fault.Full)
			must(t, os.Remove(theirs))
			must(t, s.Probe(t.Context()))
			take(t, s, term, "afterwards")
		})

		t.Run("room that the sweeper makes inside the database is room", func(t *testing.T) {
			dir := tmpfs(t, "48m")
			now := time.Now()
			s := openAt(t, filepath.Join(dir, "leasehold.db"), Options{ReserveBytes: 8 << 20, Now: func() time.Time { return now }})
			term := grant(t, s, "i")
			_, err := s.Sweep(t.Context(), maintenance.Retention{Events: time.Hour}) // how it is told
			must(t, err)
			r := engine.AcceptRequest{Term: term}
			for count(t, s, "event") < 200 {
				b := batch(term, fmt.Sprint(count(t, s, "event")))
				b.Events[0].Body, b.Events[0].Targets = []byte(strings.Repeat("x", 50_000)), nil
				_, err := s.Accept(t.Context(), b)
				must(t, err)
			}
			occupy(t, dir)
			_, err = acceptUntil(t, s, r)
			want(t, "kind", fault.Of(err), fault.Full)
			now = now.Add(2 * time.Hour)
			must(t, s.Probe(t.Context()))
			take(t, s, term, "afterwards")
		})

		t.Run("a start on a full disk says so and changes nothing", func(t *testing.T) {
			dir := tmpfs(t, "4m")
			occupy(t, dir)
			_, err := Open(t.Context(), filepath.Join(dir, "leasehold.db"), Options{})
			want(t, "kind", fault.Of(err), fault.Full)
			wantText(t, err, dir, "free some space")
		})

		t.Run("a group that finds no room is lost for all of its callers", func(t *testing.T) {
			dir := tmpfs(t, "16m")
			s := openAt(t, filepath.Join(dir, "leasehold.db"), Options{})
			term := grant(t, s, "i")
			occupy(t, dir)
			told := make([]error, 64)
			together(len(told), func(n int) {
				b := batch(term, fmt.Sprint(n))
				b.Events[0].Body = []byte(strings.Repeat("x", 500_000))
				_, told[n] = s.Accept(t.Context(), b)
			})
			refused := 0
			for _, err := range told {
				if err != nil {
					want(t, "kind", fault.Of(err), fault.Full)
					refused++
				}
			}
			want(t, "refused and stored", refused+count(t, s, "event"), len(told))
			want(t, "some were refused", refused > 0, true)
		})
	})
}

func TestBackupOnAFullDisk(t *testing.T) {
	alone(t, func(t *testing.T) {
		t.Run("a copy that does not fit is refused before it is begun, and the store goes on", func(t *testing.T) {
			s := openTest(t, Options{})
			term := grant(t, s, "i")
			large(t, s, term, "e", 100) // 5 MB
			small := tmpfs(t, "4m")
			_, err := s.Backup(t.Context(), filepath.Join(small, "copy.db"))
			want(t, "kind", fault.Of(err), fault.Full)
			wantText(t, err, small, "free some space", "another folder")
			want(t, "files", len(names(t, small)), 0)

			// Somebody else fills it in the middle of the copy.
			part := filepath.Join(small, "copy.db.part")
			must(t, os.WriteFile(part, nil, 0o600))
			err = s.copyError(part, s.copyInto(t.Context(), part, &mark{}))
			want(t, "kind in the middle", fault.Of(err), fault.Full)
			wantText(t, err, small, "no room")
			want(t, "the store is full", s.Full(), false)
			take(t, s, term, "after")
			must(t, quickCheck(t.Context(), s.path, s.db))
		})

		t.Run("beside a database that fills the disk there is none, and the database is unharmed", func(t *testing.T) {
			dir := tmpfs(t, "16m")
			s := openAt(t, filepath.Join(dir, "leasehold.db"), Options{})
			term := grant(t, s, "i")
			large(t, s, term, "e", 120) // 6 MB, and its log
			before := count(t, s, "event")
			_, err := s.Backup(t.Context(), filepath.Join(dir, "copy.db"))
			want(t, "kind", fault.Of(err), fault.Full)
			must(t, quickCheck(t.Context(), s.path, s.db))
			take(t, s, term, "after")
			want(t, "events", count(t, s, "event"), before+1)
		})

		t.Run("a restore that does not fit leaves the old database in its place", func(t *testing.T) {
			s := openTest(t, Options{})
			large(t, s, grant(t, s, "i"), "e", 100)
			from := filepath.Join(t.TempDir(), "copy.db")
			_, err := s.Backup(t.Context(), from)
			must(t, err)
			dir := tmpfs(t, "6m")
			to := filepath.Join(dir, "leasehold.db")
			must(t, os.WriteFile(to, []byte("the old one"), 0o600))
			_, err = Restore(t.Context(), from, to, RestoreOptions{Replace: true})
			want(t, "kind", fault.Of(err), fault.Full)
			b, err := os.ReadFile(to)
			must(t, err)
			want(t, "content", string(b), "the old one")
			want(t, "files", len(names(t, dir)), 1)
		})
	})
}

func TestReadOnlyMount(t *testing.T) {
	alone(t, func(t *testing.T) {
		t.Run("a read-only mount is named with the fix at the start", func(t *testing.T) {
			dir := tmpfs(t, "16m")
			path := filepath.Join(dir, "leasehold.db")
			must(t, openAt(t, path, Options{}).Close())
			must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			for _, path := range []string{path, filepath.Join(dir, "new.db")} {
				_, err := Open(t.Context(), path, Options{})
				want(t, "kind", fault.Of(err), fault.ReadOnly)
				wantText(t, err, path, "mounted read-write")
			}
			must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""))
			openAt(t, path, Options{})
		})
	})
}

func TestGoneForReaders(t *testing.T) {
	t.Run("a reader that comes later makes no new database where the old one was", func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), Options{ReserveBytes: -1})
		must(t, err)
		defer func() { _ = s.Close() }() // into nowhere
		must(t, os.Remove(s.path))
		for range readers { // more than are open
			conn, err := s.db.Conn(t.Context())
			if err != nil {
				want(t, "kind", fault.Of(s.judge(err)), fault.Gone)
				break
			}
			defer func() { must(t, conn.Close()) }()
		}
		_, err = os.Stat(s.path)
		want(t, "still gone", errors.Is(err, os.ErrNotExist), true)
	})
}

func TestGone(t *testing.T) {
	for _, which := range []string{"", "-wal"} {
		for what, take := range map[string]func(path string) error{
			"unlinked": os.Remove,
			"replaced": func(path string) error {
				return errors.Join(os.Rename(path, path+".moved"), os.WriteFile(path, nil, 0o600))
			},
		} {
			t.Run(fmt.Sprintf("nothing is acknowledged into a database whose file%s was %s", which, what), func(t *testing.T) {
				s, err := Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), Options{ReserveBytes: -1})
				must(t, err)
				defer func() { _ = s.Close() }() // into nowhere
				term := grant(t, s, "i")
				must(t, s.CheckFiles())
				must(t, take(s.path+which))
				_, err = s.Accept(t.Context(), batch(term, "1"))
				want(t, "accept", fault.Of(err), fault.Gone)
				wantText(t, err, s.path+which, "put the file back")
				for what, err := range map[string]error{
					"list": func() error { _, err := s.List(t.Context(), 0); return err }(), "probe": s.Probe(t.Context()), "check": s.CheckFiles(),
				} {
					want(t, what, fault.Of(err), fault.Gone)
					want(t, what+" means the store", fault.Store(err), true)
				}
			})
		}
	}
}

func TestReserve(t *testing.T) {
	t.Run("it is made of real blocks, and made again when it was given up", func(t *testing.T) {
		s := openTest(t, Options{ReserveBytes: 1 << 20})
		var st syscall.Stat_t
		must(t, syscall.Stat(s.reservePath(), &st))
		want(t, "size", st.Size, 1<<20)
		want(t, "blocks", st.Blocks*512 >= 1<<20, true)
		s.giveUpReserve()
		want(t, "missing", s.reserveMissing(), 1<<20)
		s.giveUpReserve() // it is gone already
		s.ensureReserve()
		want(t, "missing after it was made again", s.reserveMissing(), 0)
	})
	t.Run("blocks can be written where they cannot be allocated", func(t *testing.T) {
		f, err := os.Create(filepath.Join(t.TempDir(), "reserve"))
		must(t, err)
		must(t, fill(f, 3<<20+5))
		want(t, "size", sizeOf(f.Name()), 3<<20+5)
		must(t, f.Close())
	})
	t.Run("there is none where none is wanted", func(t *testing.T) {
		s := openTest(t, Options{ReserveBytes: -1})
		want(t, "missing", s.reserveMissing(), 0)
		want(t, "size", sizeOf(s.reservePath()), 0)
	})
}
