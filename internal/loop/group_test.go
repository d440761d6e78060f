package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

func newGroup(t *testing.T, timing loop.Timing, tasks ...loop.Task) *loop.Group {
	t.Helper()
	g, err := loop.NewGroup(timing, slog.New(slog.DiscardHandler), tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func task(name string, cycle func(context.Context) error) loop.Task {
	return loop.Task{Name: name, Every: time.Hour, Cycle: cycle}
}

func TestGroup(t *testing.T) {
	clean := func(context.Context) error { return nil }
	boom := errors.New("boom")

	t.Run("one task's crash leaves the others running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			g := newGroup(t, loop.Standard(),
				task("upkeep", func(context.Context) error { n++; return nil }),
				task("sweeper", func(context.Context) error { panic("boom") }))
			stop := start(t, g.Run)
			after(t, 2*time.Hour+2*time.Second)
			equal(t, "the other's cycles", n, 3)
			s := g.Status()
			equal(t, "first by name", s[0].Name, "sweeper")
			equal(t, "second by name", s[1].Name, "upkeep")
			if s[0].ConsecutiveFailures < 10 || s[1].ConsecutiveFailures != 0 {
				t.Errorf("got failures %d and %d, want many and none", s[0].ConsecutiveFailures, s[1].ConsecutiveFailures)
			}
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("several tasks are splayed and a single one is not", func(t *testing.T) {
		for _, names := range [][]string{{"a"}, {"a", "b"}} {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				var tasks []loop.Task
				for _, name := range names {
					tasks = append(tasks, task(name, func(context.Context) error { n++; return nil }))
				}
				timing := loop.Standard()
				timing.Splay = 1 << 62 // so that the chance of none is none
				stop := start(t, newGroup(t, timing, tasks...).Run)
				equal(t, "tasks that started at once", n, 2-len(names))
				equal(t, "Run", stop(), nil)
			})
		}
	})

	t.Run("a trigger goes by name and ends the splay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGroup(t, loop.Standard(), task("a", clean), task("b", func(context.Context) error { return boom }))
			stop := start(t, g.Run)
			equal(t, "a", g.Trigger(t.Context(), "a"), nil)
			equal(t, "b", g.Trigger(t.Context(), "b"), boom)
			err := g.Trigger(t.Context(), "c")
			if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "a, b") {
				t.Errorf("c: got %v, want not found and the names there are", err)
			}
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("once runs one cycle without the loop, and refuses beside it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			g := newGroup(t, loop.Timing{}, task("a", func(context.Context) error { n++; return nil }),
				task("b", func(context.Context) error { panic("boom") }))
			equal(t, "first", g.Once(t.Context(), "a"), nil)
			equal(t, "again", g.Once(t.Context(), "a"), nil)
			equal(t, "cycles", n, 2)
			if err := g.Once(t.Context(), "b"); err == nil || !strings.HasPrefix(err.Error(), "panic: boom") {
				t.Errorf("b: got %v, want the panic", err)
			}
			if err := g.Once(t.Context(), "c"); !fault.Is(err, fault.NotFound) {
				t.Errorf("c: got %v, want not found", err)
			}
			stop := start(t, g.Run)
			if err := g.Once(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "trigger it instead") {
				t.Errorf("beside Run: got %v, want a refusal", err)
			}
			equal(t, "cycles", n, 3)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a group without tasks runs until its context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			equal(t, "Run", newGroup(t, loop.Standard()).Run(ctx), nil)
			equal(t, "ran for", time.Since(began), time.Hour)
		})
	})

	t.Run("a second Run is refused at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGroup(t, loop.Standard(), task("a", clean))
			stop := start(t, g.Run)
			if err := g.Run(t.Context()); err == nil {
				t.Error("second Run: got nil, want a refusal")
			}
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a task without a name, without a cycle or of a taken name is refused", func(t *testing.T) {
		for _, tasks := range [][]loop.Task{{task("", clean)}, {task("a", nil)}, {task("a", clean), task("a", clean)}} {
			if _, err := loop.NewGroup(loop.Standard(), slog.New(slog.DiscardHandler), tasks...); err == nil {
				t.Errorf("%+v: got nil, want a refusal", tasks)
			}
		}
	})

	// Every test in a bubble fails when a goroutine outlives it; this one stops at
	// every moment there is and is read by the race detector.
	t.Run("starting, triggering, looking and stopping race without harm", func(t *testing.T) {
		for i := range 200 {
			synctest.Test(t, func(t *testing.T) {
				var running atomic.Int32
				g := newGroup(t, loop.Timing{FirstBackoff: time.Millisecond}, task("a", func(ctx context.Context) error {
					if running.Add(1) > 1 {
						t.Error("got two cycles at once, want one")
					}
					defer running.Add(-1)
					if err := loop.Sleep(ctx, time.Duration(1+i%7)*time.Microsecond); err != nil {
						return err
					}
					panic("boom")
				}), task("b", clean))
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { equal(t, "Run", g.Run(ctx), nil) })
				for range 4 {
					wg.Go(func() {
						for ctx.Err() == nil {
							_ = g.Trigger(ctx, "a") // panics, or ends with ctx
							g.Status()
						}
					})
				}
				after(t, time.Duration(i)*time.Microsecond)
				cancel()
				wg.Wait()
				equal(t, "cycles after Run", running.Load(), 0)
			})
		}
	})
}
