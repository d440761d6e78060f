package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/loop"
)

func TestCrash(t *testing.T) {
	crash := func(t *testing.T, cycle func(context.Context) error, timing loop.Timing, rec *records) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			n := 0
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Deadline: time.Minute, Cycle: func(ctx context.Context) error {
				if n++; n > 1 {
					return nil
				}
				return cycle(ctx)
			}}, timing, slog.New(rec))
			stop := start(t, l.Run)
			after(t, 10*time.Minute)
			equal(t, "cycles", n, 2)
			equal(t, "records", len(rec.all), 1)
			equal(t, "Run", stop(), nil)
		})
	}

	t.Run("a panic is an error with its stack", func(t *testing.T) {
		rec := &records{}
		crash(t, func(context.Context) error { panic("the map is nil") }, loop.Timing{}, rec)
		got := attrs(rec.all[0])["error"].String()
		if !strings.HasPrefix(got, "panic: the map is nil\n") || !strings.Contains(got, "TestCrash") {
			t.Errorf("got error %q, want the panic's value and the stack that led to it", got)
		}
	})

	t.Run("a panic of nil is a crash too", func(t *testing.T) {
		crash(t, func(context.Context) error { panic(nil) }, loop.Timing{}, &records{})
	})

	t.Run("a cycle that ends its goroutine is a crash", func(t *testing.T) {
		crash(t, func(context.Context) error { runtime.Goexit(); return nil }, loop.Timing{}, &records{})
	})

	t.Run("a foreign deadline or cancellation is a crash, not a shutdown", func(t *testing.T) {
		for _, err := range []error{context.DeadlineExceeded, context.Canceled} {
			crash(t, func(context.Context) error { return err }, loop.Timing{}, &records{})
		}
	})

	t.Run("a hung call is ended by the cycle's deadline", func(t *testing.T) {
		rec := &records{}
		crash(t, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, loop.Timing{}, rec)
		equal(t, "error", attrs(rec.all[0])["error"].String(), "gave up after 1m0s: context deadline exceeded")
	})

	t.Run("a handler that panics does not end the loop", func(t *testing.T) {
		rec := &records{fail: func() { panic("the pipe is gone") }}
		crash(t, func(context.Context) error { return errors.New("boom") }, loop.Timing{}, rec)
	})

	t.Run("an error whose text panics does not end the loop", func(t *testing.T) {
		var broken *textless
		crash(t, func(context.Context) error { return broken }, loop.Timing{}, &records{})
	})
}

// textless is an error that cannot say what it is.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

func TestStuck(t *testing.T) {
	timing := loop.Timing{Grace: 10 * time.Second}
	// deaf returns a task whose first cycle ignores its context until freed.
	deaf := func(runs *int, most *int) (task loop.Task, free chan struct{}) {
		free = make(chan struct{})
		running := 0
		return loop.Task{Name: "x", Every: time.Hour, Deadline: time.Minute, Cycle: func(context.Context) error {
			running++
			*runs, *most = *runs+1, max(*most, running)
			if *runs == 1 {
				<-free
			}
			running--
			return nil
		}}, free
	}

	t.Run("a cycle that ignores its deadline is reported, and the next waits for it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var runs, most int
			rec := &records{}
			task, free := deaf(&runs, &most)
			l := loop.New(task, timing, slog.New(rec))
			stop := start(t, l.Run)
			after(t, time.Minute+10*time.Second)
			equal(t, "records", len(rec.all), 1)
			equal(t, "error", l.Status().LastError, "still running 10s after it was told to stop")
			equal(t, "running", l.Status().Running, true)

			after(t, time.Hour)
			equal(t, "cycles while one is stuck", runs, 1)
			equal(t, "records while one is stuck", len(rec.all), 1)

			close(free)
			synctest.Wait()
			equal(t, "cycles after it returned", runs, 2)
			equal(t, "most at once", most, 1)
			equal(t, "failures after a clean cycle", l.Status().ConsecutiveFailures, 0)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a result older than the newest never replaces it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var runs, most int
			task, free := deaf(&runs, &most)
			l := loop.New(task, timing, slog.New(&records{}))
			stop := start(t, l.Run)
			after(t, time.Minute+11*time.Second) // reported stuck; in its backoff
			close(free)                          // returns nil, too late
			synctest.Wait()
			s := l.Status()
			equal(t, "failures", s.ConsecutiveFailures, 1)
			equal(t, "last success", s.LastSuccess, time.Time{})
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a cycle that ignores the shutdown is left running after the grace, by name", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var runs, most int
			task, free := deaf(&runs, &most)
			rec := &records{}
			stop := start(t, loop.New(task, timing, slog.New(rec)).Run)
			began := time.Now()
			err := stop()
			if err == nil || !strings.Contains(err.Error(), "task x") {
				t.Errorf("Run: got %v, want an error that names the task", err)
			}
			equal(t, "time to stop", time.Since(began), 10*time.Second)
			equal(t, "records", len(rec.all), 0)
			close(free)
		})
	})

	t.Run("a shutdown waits for a cycle that heeds it and logs nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rec, ended := &records{}, false
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(ctx context.Context) error {
				<-ctx.Done()
				err := loop.Sleep(context.WithoutCancel(ctx), time.Second) // commits what it has begun
				ended = true
				return errors.Join(err, errors.New("interrupted"))
			}}, timing, slog.New(rec))
			stop := start(t, l.Run)
			equal(t, "Run", stop(), nil)
			equal(t, "cycle ended before Run returned", ended, true)
			equal(t, "records", len(rec.all), 0)
			equal(t, "failures", l.Status().ConsecutiveFailures, 0)
		})
	})

	t.Run("a cycle that ends cleanly during the shutdown is a success", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			}}, timing, slog.New(&records{}))
			equal(t, "Run", start(t, l.Run)(), nil)
			equal(t, "last success", l.Status().LastSuccess, time.Now())
		})
	})

	t.Run("a panic during the shutdown is still logged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rec := &records{}
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(ctx context.Context) error {
				<-ctx.Done()
				panic("closed twice")
			}}, timing, slog.New(rec))
			equal(t, "Run", start(t, l.Run)(), nil)
			equal(t, "records", len(rec.all), 1)
			equal(t, "backoff_s", attrs(rec.all[0])["backoff_s"].Float64(), 0)
		})
	})
}
