package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/loop"
)

func TestTrigger(t *testing.T) {
	boom := errors.New("boom")
	quiet := slog.New(slog.DiscardHandler)

	t.Run("a trigger runs the task now and returns its result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(context.Context) error {
				if n++; n == 2 {
					return boom
				}
				return nil
			}}, loop.Timing{}, quiet)
			stop := start(t, l.Run)
			began := time.Now()
			equal(t, "failing trigger", l.Trigger(t.Context()), boom)
			equal(t, "trigger in the backoff", l.Trigger(t.Context()), nil)
			equal(t, "time taken", time.Since(began), 0)
			equal(t, "cycles", n, 3)

			synctest.Wait() // the loop is in its pause again
			equal(t, "next run", time.Until(l.Status().NextRun), time.Hour)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("triggers during a cycle share one that begins after them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, running, most := 0, 0, 0
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(ctx context.Context) error {
				n++
				running++
				most = max(most, running)
				defer func() { running-- }()
				if err := loop.Sleep(ctx, time.Second); err != nil {
					return err
				}
				if n == 1 {
					return nil
				}
				return boom
			}}, loop.Timing{}, quiet)
			stop := start(t, l.Run)
			after(t, time.Second/2) // the first cycle is half way through
			began := time.Now()
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() { equal(t, "the second cycle's result", l.Trigger(t.Context()), boom) })
			}
			wg.Wait()
			equal(t, "time taken", time.Since(began), 1500*time.Millisecond)
			equal(t, "cycles", n, 2)
			equal(t, "most at once", most, 1)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a trigger before Run is served by the first cycle and by that alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(context.Context) error { n++; return boom }},
				loop.Timing{FirstBackoff: time.Minute}, quiet)
			got := make(chan error, 1)
			go func() { got <- l.Trigger(t.Context()) }()
			synctest.Wait()
			stop := start(t, l.Run)
			equal(t, "its result", <-got, boom)
			equal(t, "cycles", n, 1)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a caller that gives up leaves the cycle running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(ctx context.Context) error {
				err := loop.Sleep(ctx, time.Minute)
				n++
				return err
			}}, loop.Timing{}, quiet)
			stop := start(t, l.Run)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := l.Trigger(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Trigger: got %v, want the caller's deadline", err)
			}
			after(t, 2*time.Minute)
			equal(t, "cycles ended", n, 2)
			equal(t, "last error", l.Status().LastError, "")
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a trigger ends with the loop, before, in and after a cycle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(ctx context.Context) error {
				return loop.Sleep(ctx, time.Minute)
			}}, loop.Timing{}, quiet)
			got := make(chan error, 2)
			go func() { got <- l.Trigger(t.Context()) }() // served by the first cycle
			synctest.Wait()
			stop := start(t, l.Run)
			go func() { got <- l.Trigger(t.Context()) }() // waits for the second
			synctest.Wait()
			equal(t, "Run", stop(), nil)
			for _, err := range []error{<-got, <-got, l.Trigger(t.Context())} {
				if !errors.Is(err, loop.ErrStopped) {
					t.Errorf("Trigger: got %v, want ErrStopped", err)
				}
			}
		})
	})
}

func TestStatus(t *testing.T) {
	t.Run("the status tells the newest cycle's story", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			zero, n := time.Now(), 0
			l := loop.New(loop.Task{Name: "sweeper", Every: time.Hour, Cycle: func(ctx context.Context) error {
				if err := loop.Sleep(ctx, time.Second); err != nil {
					return err
				}
				if n++; n == 2 {
					panic("boom")
				}
				return nil
			}}, loop.Timing{FirstBackoff: 5 * time.Second}, slog.New(slog.DiscardHandler))
			equal(t, "before Run", l.Status(), loop.Status{Name: "sweeper"})

			stop := start(t, l.Run)
			equal(t, "in the first cycle", l.Status(), loop.Status{Name: "sweeper", Running: true, Runs: 1, LastStart: zero})

			after(t, time.Second)
			first := zero.Add(time.Second)
			equal(t, "after it", l.Status(), loop.Status{
				Name: "sweeper", Runs: 1, LastStart: zero, LastSuccess: first, NextRun: first.Add(time.Hour),
			})

			after(t, time.Hour+time.Second)
			second := first.Add(time.Hour)
			equal(t, "after a panic", l.Status(), loop.Status{
				Name: "sweeper", Runs: 2, LastStart: second, LastSuccess: first, NextRun: second.Add(6 * time.Second),
				ConsecutiveFailures: 1, LastError: "panic: boom",
			})

			after(t, 6*time.Second)
			equal(t, "failures after a clean cycle", l.Status().ConsecutiveFailures, 0)
			equal(t, "error after a clean cycle", l.Status().LastError, "")

			equal(t, "Run", stop(), nil)
			equal(t, "next run of a stopped loop", l.Status().NextRun, time.Time{})
		})
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		equal(t, "the whole time", loop.Sleep(t.Context(), time.Minute), nil)
		equal(t, "slept", time.Since(began), time.Minute)
		equal(t, "no time", loop.Sleep(t.Context(), -time.Minute), nil)
		equal(t, "slept", time.Since(began), time.Minute)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		equal(t, "cut short", loop.Sleep(ctx, time.Hour), context.DeadlineExceeded)
		equal(t, "slept", time.Since(began), time.Minute+time.Second)
		equal(t, "no time, context ended", loop.Sleep(ctx, 0), context.DeadlineExceeded)
	})
}
