package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
)

// stall keeps the committer busy until the function that it returns is called,
// so that what comes meanwhile forms one group.
func stall(t *testing.T, s *Store) (release func()) {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.c.outside(t.Context(), func(*writer) error {
			close(began)
			<-end
			return nil
		})
	}()
	<-began
	return sync.OnceFunc(func() { close(end) })
}

// queued waits until n items stand in the committer's queue.
func queued(t *testing.T, s *Store, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d items in the queue", n), func() bool { return len(s.c.tail) == n })
}

func TestCommitter(t *testing.T) {
	t.Run("what waits shares one commit: batches, marks and states", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		take(t, s, term, "1")
		before := s.commits.Load()
		release := stall(t, s)
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() { take(t, s, term, fmt.Sprint("a", n)) })
		}
		wg.Go(func() {
			_, err := s.Mark(t.Context(), []delivery.Mark{{Term: term, Seq: 1, Target: "app", State: delivery.Delivered}})
			must(t, err)
		})
		wg.Go(func() {
			must(t, s.SaveStatus(t.Context(), []engine.TermStatus{{Term: term, Status: engine.LinkStatus{Installation: "i", State: engine.Connected}}}))
		})
		queued(t, s, 22)
		release()
		wg.Wait()
		want(t, "commits", s.commits.Load()-before, 1)
		want(t, "events", count(t, s, "event"), 21)
	})

	t.Run("a group is bounded by rows and by bytes", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		for name, r := range map[string]struct {
			body    int
			n       int
			commits int64
		}{
			"rows":  {10, 600, 3},     // of 2 rows each: 512 fit
			"bytes": {4 << 20, 10, 3}, // 16 MiB fit
		} {
			before := s.commits.Load()
			release := stall(t, s)
			var wg sync.WaitGroup
			for n := range r.n {
				b := batch(term, fmt.Sprint(name, n))
				b.Events[0].Body = bytes.Repeat([]byte("x"), r.body)
				wg.Go(func() {
					_, err := s.Accept(t.Context(), b)
					must(t, err)
				})
			}
			queued(t, s, r.n)
			release()
			wg.Wait()
			want(t, "commits for "+name, s.commits.Load()-before, r.commits)
		}
	})

	t.Run("a caller's end never costs the connection, nor its batch", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		must(t, s.c.outside(t.Context(), func(w *writer) error {
			_, err := w.exec("CREATE TEMP TABLE mine (a)") // lives as long as the connection
			return err
		}))
		release := stall(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n := range 30 {
			wg.Go(func() {
				_, err := s.Accept(ctx, batch(term, fmt.Sprint(n)))
				want(t, "the caller's own end", errors.Is(err, context.Canceled), true)
				wantText(t, err, "outcome is unknown")
			})
		}
		queued(t, s, 30)
		cancel()
		wg.Wait()
		_, err := s.Claim(ctx, "session", nil)
		want(t, "a lease statement's caller", errors.Is(err, context.Canceled), true)
		release()
		take(t, s, term, "behind them")
		want(t, "events", count(t, s, "event"), 31)
		must(t, s.c.outside(t.Context(), func(w *writer) error {
			_, err := w.exec("SELECT * FROM mine")
			return err
		}))
	})

	t.Run("one batch whose data the database refuses fails alone", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		must(t, s.c.outside(t.Context(), func(w *writer) error {
			_, err := sqlitedriver.Limit(w.conn, sqlite3.SQLITE_LIMIT_LENGTH, 1<<20)
			return err
		}))
		for _, several := range []bool{true, false} {
			n := 1
			if several {
				n = 15
			}
			before := count(t, s, "event")
			release := stall(t, s)
			var wg sync.WaitGroup
			for i := range n {
				b := batch(term, fmt.Sprintf("%v-%d-1", several, i), fmt.Sprintf("%v-%d-2", several, i))
				b.Cursor = fmt.Append(nil, i)
				if i%5 == 0 {
					b.Events[1].Body = bytes.Repeat([]byte("x"), 2<<20)
				}
				wg.Go(func() {
					got, err := s.Accept(t.Context(), b)
					if i%5 == 0 {
						want(t, "too large", fault.Of(err), fault.Invalid)
						want(t, "is not the store's fault", fault.Store(err), false)
						return
					}
					must(t, err)
					want(t, "duplicates", got.Duplicates, 0)
				})
			}
			queued(t, s, n)
			release()
			wg.Wait()
			want(t, "events of the others", count(t, s, "event")-before, 2*(n-1-(n-1)/5))
		}
	})

	t.Run("a group whose commit fails is lost for all, and the next one goes on", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		release := stall(t, s)
		FailNext(s, false)
		together(2, func(n int) {
			if n == 1 {
				queued(t, s, 10)
				release()
				return
			}
			together(10, func(n int) {
				_, err := s.Accept(t.Context(), batch(term, fmt.Sprint(n)))
				want(t, "told", errors.Is(err, ErrInjected), true)
			})
		})
		want(t, "events", count(t, s, "event"), 0)
		take(t, s, term, "next")
	})

	t.Run("lease statements stand before the batches that wait, which are then fenced", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		release := stall(t, s)
		var wg sync.WaitGroup
		for n := range 5 {
			wg.Go(func() {
				_, err := s.Accept(t.Context(), batch(term, fmt.Sprint(n)))
				want(t, "fenced", errors.Is(err, engine.ErrFenced), true)
			})
		}
		queued(t, s, 5)
		var run int64
		wg.Go(func() {
			var err error
			run, _, err = s.BeginTerm(t.Context(), term, "bot")
			must(t, err)
		})
		eventually(t, "the term in the queue", func() bool { return len(s.c.head) == 1 })
		release()
		wg.Wait()
		want(t, "run", run, term.Run+1)
		want(t, "events", count(t, s, "event"), 0)
	})

	t.Run("closing finishes what waits", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		release := stall(t, s)
		told := make([]error, 50)
		var wg sync.WaitGroup
		for n := range told {
			wg.Go(func() { _, told[n] = s.Accept(t.Context(), batch(term, fmt.Sprint(n))) })
		}
		queued(t, s, len(told))
		wg.Go(func() { must(t, s.Close()) })
		eventually(t, "the closing", func() bool { return s.closed.Load() })
		release()
		wg.Wait()
		for _, err := range told {
			must(t, err)
		}
		want(t, "events", count(t, openAt(t, s.path, Options{}), "event"), len(told))
	})

	t.Run("a refused or known batch writes nothing", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		b := batch(term, "1")
		b.Cursor = []byte("here")
		_, err := s.Accept(t.Context(), b)
		must(t, err)
		stale := batch(term, "2")
		stale.Term.Epoch--
		before := walBytes(t, s)
		for range 50 {
			_, err := s.Accept(t.Context(), b)
			must(t, err)
			if _, err := s.Accept(t.Context(), stale); !errors.Is(err, engine.ErrFenced) {
				t.Fatalf("got %v, want ErrFenced", err)
			}
		}
		want(t, "log written", bytes.Equal(walBytes(t, s), before), true)
	})

	t.Run("a foreign lock is waited for, then only the call fails", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		foreign, err := sql.Open("sqlite", dsn(s.path, dsnWrite))
		must(t, err)
		defer func() { must(t, foreign.Close()) }()
		tx, err := foreign.BeginTx(t.Context(), nil)
		must(t, err)
		must(t, s.c.outside(t.Context(), func(w *writer) error { _, err := w.exec("PRAGMA busy_timeout = 50"); return err }))
		_, err = s.Accept(t.Context(), batch(term, "1"))
		want(t, "kind", fault.Of(err), fault.Busy)
		want(t, "is not a broken store", fault.Store(err), false)
		wantText(t, err, "another program holds a lock", "fuser "+s.path)
		must(t, tx.Rollback())
		take(t, s, term, "1")
	})

	t.Run("a foreign tool's change is listed and wakes within a second", func(t *testing.T) {
		s := openTest(t, Options{})
		grant(t, s, "i")
		snap, err := s.List(t.Context(), 0)
		must(t, err)
		changes := s.Watch(t.Context())
		foreign, err := sql.Open("sqlite", dsn(s.path, dsnWrite))
		must(t, err)
		defer func() { must(t, foreign.Close()) }()
		_, err = foreign.ExecContext(t.Context(), "UPDATE installation SET enabled = 0")
		must(t, err)
		select {
		case <-changes:
		case <-time.After(time.Minute):
			t.Fatal("got no wake-up, want one")
		}
		snap, err = s.List(t.Context(), snap.Version)
		must(t, err)
		want(t, "unchanged", snap.Unchanged, false)
		want(t, "enabled", snap.Installations[0].Enabled, false)
	})

	t.Run("a store lives in a bubble, by its clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, err := Shared(t.Context(), t.TempDir()+"/x.db", Options{ReserveBytes: -1})
			must(t, err)
			_, err = s.OpenSession(t.Context(), engine.SessionRequest{ID: "a", Instance: "a", TTL: 30 * time.Second})
			must(t, err)
			<-time.After(29 * time.Second)
			n, err := s.Reap(t.Context(), time.Now())
			must(t, err)
			want(t, "reaped before", n, 0)
			<-time.After(time.Second)
			n, err = s.Reap(t.Context(), time.Now())
			must(t, err)
			want(t, "reaped", n, 1)
			must(t, s.Close())
		})
	})
}

// walBytes is what the log's file holds.
func walBytes(t *testing.T, s *Store) []byte {
	t.Helper()
	b, err := os.ReadFile(s.path + "-wal")
	must(t, err)
	return b
}
