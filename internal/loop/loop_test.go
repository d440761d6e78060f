package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/loop"
)

// records keeps what a loop logs.
type records struct {
	mu   sync.Mutex
	all  []slog.Record
	fail func() // breaks the handler
}

func (*records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r *records) WithGroup(string) slog.Handler          { return r }

func (r *records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rec)
	if r.fail != nil {
		r.fail()
	}
	return errors.New("no space left on device")
}

func (r *records) waits() (w []float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.all {
		w = append(w, attrs(rec)["backoff_s"].Float64())
	}
	return w
}

func attrs(rec slog.Record) map[string]slog.Value {
	m := map[string]slog.Value{}
	rec.Attrs(func(a slog.Attr) bool { m[a.Key] = a.Value; return true })
	return m
}

// start runs l in the bubble; the stop it returns ends it and returns Run's error.
func start(t *testing.T, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	synctest.Wait()
	return func() error { cancel(); return <-done }
}

// after moves the bubble's clock.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	if err := loop.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestLoop(t *testing.T) {
	boom := errors.New("boom")

	t.Run("a cycle runs at once and then after every interval", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var began []time.Duration
			zero := time.Now()
			l := loop.New(loop.Task{Name: "sweeper", Every: time.Hour, Cycle: func(ctx context.Context) error {
				began = append(began, time.Since(zero))
				return loop.Sleep(ctx, time.Minute)
			}}, loop.Timing{}, slog.New(&records{}))
			stop := start(t, l.Run)
			after(t, 2*time.Hour+2*time.Minute+time.Second)
			equal(t, "cycles", len(began), 3)
			equal(t, "first", began[0], 0)
			equal(t, "second, an interval after the end of the first", began[1], time.Hour+time.Minute)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a failure is logged once with the wait about to be taken, which doubles to the cap", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rec := &records{}
			var began []time.Time
			l := loop.New(loop.Task{Name: "sweeper", Every: time.Hour, Cycle: func(context.Context) error {
				began = append(began, time.Now())
				return boom
			}}, loop.Standard(), slog.New(rec))
			stop := start(t, l.Run)
			after(t, 2*time.Second+(5+10+20+40+80+160+300+300)*time.Second)
			equal(t, "Run", stop(), nil)

			want := []float64{5, 10, 20, 40, 80, 160, 300, 300}
			got := rec.waits()
			if len(got) < len(want) || len(began) < len(want) {
				t.Fatalf("got waits %v in %d cycles, want at least %v", got, len(began), want)
			}
			for i, w := range want {
				equal(t, "backoff_s", got[i], w)
				if i+1 < len(began) {
					equal(t, "wait taken", began[i+1].Sub(began[i]).Seconds(), w)
				}
			}
			first := rec.all[0]
			equal(t, "message", first.Message, "background task crashed")
			equal(t, "level", first.Level, slog.LevelError)
			equal(t, "attributes", first.NumAttrs(), 3)
			equal(t, "task", attrs(first)["task"].String(), "sweeper")
			equal(t, "error", attrs(first)["error"].String(), "boom")
		})
	})

	t.Run("a clean cycle resets the wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rec, n := &records{}, 0
			l := loop.New(loop.Task{Name: "sweeper", Every: time.Second, Cycle: func(context.Context) error {
				if n++; n == 3 {
					return nil
				}
				return boom
			}}, loop.Timing{FirstBackoff: time.Second, MaxBackoff: time.Minute}, slog.New(rec))
			stop := start(t, l.Run)
			after(t, (1+2+1)*time.Second)
			equal(t, "Run", stop(), nil)
			got := rec.waits()
			if len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 1 {
				t.Errorf("got waits %v, want [1 2 1]", got)
			}
		})
	})

	t.Run("an interval that is not positive counts as a second", func(t *testing.T) {
		for _, every := range []time.Duration{0, -time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				l := loop.New(loop.Task{Name: "x", Every: every, Cycle: func(context.Context) error { n++; return nil }},
					loop.Timing{}, slog.New(&records{}))
				stop := start(t, l.Run)
				after(t, 10*time.Second+time.Millisecond)
				equal(t, "cycles in ten seconds", n, 11)
				equal(t, "Run", stop(), nil)
			})
		}
	})

	t.Run("a cycle without a deadline of its own gets three intervals and at least a minute", func(t *testing.T) {
		for every, want := range map[time.Duration]time.Duration{time.Second: time.Minute, time.Hour: 3 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				var got time.Duration
				l := loop.New(loop.Task{Name: "x", Every: every, Cycle: func(ctx context.Context) error {
					d, _ := ctx.Deadline()
					got = time.Until(d)
					return nil
				}}, loop.Timing{}, slog.New(&records{}))
				equal(t, "Once", l.Once(t.Context()), nil)
				equal(t, "deadline", got, want)
			})
		}
	})

	t.Run("the splay delays the first cycle by less than itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(context.Context) error { n++; return nil }},
				loop.Standard(), slog.New(&records{}))
			stop := start(t, l.Run)
			if next := l.Status().NextRun; next.IsZero() || time.Until(next) >= 2*time.Second {
				t.Errorf("got next run %v, want one within two seconds", next)
			}
			after(t, 2*time.Second)
			equal(t, "cycles after the splay", n, 1)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("a loop runs once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(context.Context) error { return nil }},
				loop.Timing{}, slog.New(&records{}))
			stop := start(t, l.Run)
			if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "running already") {
				t.Errorf("second Run: got %v, want a refusal", err)
			}
			equal(t, "Run", stop(), nil)
			if err := l.Run(t.Context()); !errors.Is(err, loop.ErrStopped) {
				t.Errorf("Run after Run: got %v, want ErrStopped", err)
			}
		})
	})
}
