package loop_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/loop"
)

func TestSetEvery(t *testing.T) {
	t.Run("another interval holds for the pause under way, shorter or longer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			l := loop.New(loop.Task{Name: "x", Every: time.Hour, Cycle: func(context.Context) error { n.Add(1); return nil }}, loop.Timing{}, slog.New(&records{}))
			stop := start(t, l.Run)
			after(t, 10*time.Minute)
			equal(t, "cycles", n.Load(), int64(1))

			l.SetEvery(20 * time.Minute)
			synctest.Wait()
			equal(t, "next run", l.Status().NextRun, time.Now().Add(10*time.Minute))
			after(t, 10*time.Minute)
			equal(t, "cycles when the shorter pause is over", n.Load(), int64(2))

			l.SetEvery(time.Minute)
			after(t, time.Minute)
			l.SetEvery(5 * time.Second) // shorter than the pause has lasted
			synctest.Wait()
			was := n.Load()
			l.SetEvery(time.Hour)
			after(t, 59*time.Minute)
			equal(t, "cycles during the longer pause", n.Load(), was)
			after(t, time.Minute)
			equal(t, "cycles after it", n.Load(), was+1)
			equal(t, "Run", stop(), nil)
		})
	})

	t.Run("the wait after a failure stays as it is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			g := newGroup(t, loop.Timing{FirstBackoff: time.Minute}, task("x", func(context.Context) error { n.Add(1); return context.Canceled }))
			stop := start(t, g.Run)
			g.SetEvery("x", time.Second)
			g.SetEvery("nobody", time.Second)
			after(t, 59*time.Second)
			equal(t, "cycles", n.Load(), int64(1))
			after(t, time.Second)
			equal(t, "cycles after the wait", n.Load(), int64(2))
			equal(t, "Run", stop(), nil)
		})
	})
}
