package delivery

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestHealth(t *testing.T) {
	for what, failure := range map[string]Result{
		"404":           {Outcome: Refused, Reason: "answered 404: not found"},
		"500":           {Outcome: Broken, Reason: "answered 500: oops"},
		"no answer":     {Outcome: Slow, Reason: "no answer in time"},
		"no connection": {Outcome: Down, Reason: "connection refused"},
	} {
		t.Run("a target fails from its first "+what+" to its next success", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box, begin := newOutbox(), time.Now()
				var works atomic.Bool
				sink := &fakeSink{answer: func(context.Context, Delivery) Result {
					if works.Load() {
						return Result{Outcome: Taken}
					}
					return failure
				}}
				b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
				first := b.Stats().Targets[0]
				same(t, "failing before any attempt", first.FailingSince.IsZero() && first.LastErrorAt.IsZero(), true)
				village(box, 2, 1)
				b.hold("acme")
				time.Sleep(time.Minute)
				s := b.Stats().Targets[0]
				same(t, "last error", s.LastError, failure.Reason)
				same(t, "failing since it began", !s.FailingSince.IsZero() && s.FailingSince.Sub(begin) < time.Second, true)
				same(t, "the last error is later", s.LastErrorAt.After(s.FailingSince), true)
				same(t, "waiting", s.Waiting, 2)
				works.Store(true)
				time.Sleep(time.Hour)
				s = b.Stats().Targets[0]
				same(t, "failing after a success", s.FailingSince.IsZero(), true)
				same(t, "last error after a success", s.LastError, failure.Reason)
				same(t, "waiting after a success", s.Waiting, 0)
			})
		})
	}

	t.Run("an attempt that was broken off says nothing", func(t *testing.T) {
		var h health
		h.note(Result{Outcome: Aborted, Reason: "broken off"}, 5)
		same(t, "health", h, health{})
	})
}
