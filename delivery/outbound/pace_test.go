package outbound

import (
	"testing"
	"testing/synctest"
	"time"

	"leasehold/delivery"
)

func TestPace(t *testing.T) {
	t.Run("a target that may hear itself is down for a minute after sixty posts in one, and by itself again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, pace := &poster{}, &Pace{}
			r := relayTo(p)
			r.Target, r.Pace = "one", pace
			other := r
			other.Target = "two"
			for round := range 3 {
				for range PaceMost {
					if got := r.Deliver(t.Context(), attempt("acme", "C1", "again", false)); got.Outcome != delivery.Taken {
						t.Fatalf("round %d: got %+v, want it taken", round, got)
					}
				}
				for range 10 {
					got := r.Deliver(t.Context(), attempt("acme", "C1", "again", false))
					if got.Outcome != delivery.Down || got.After != PaceTime || got.Reason != "more than 60 posts a minute into one conversation: a loop?" || got.NextStep == "" {
						t.Fatalf("round %d: got %+v, want it down for a minute", round, got)
					}
				}
				if want := (round + 1) * PaceMost; len(p.posted)-round != want {
					t.Fatalf("round %d: got %d posted, want %d", round, len(p.posted)-round, want)
				}
				if got := other.Deliver(t.Context(), attempt("acme", "C1", "once", false)); got.Outcome != delivery.Taken {
					t.Errorf("round %d: got %+v for another target, want it taken", round, got)
				}
				time.Sleep(PaceTime)
			}
		})
	})

	t.Run("one that cannot hear itself, and one that posts slowly, are never held back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &poster{}
			fast, slow := relayTo(p), relayTo(p)
			slow.Target, slow.Pace = "slow", &Pace{}
			for i := range 3 * PaceMost {
				for _, r := range []Relay{fast, slow} {
					if got := r.Deliver(t.Context(), attempt("acme", "C1", "x", false)); got.Outcome != delivery.Taken {
						t.Fatalf("post %d: got %+v, want it taken", i, got)
					}
				}
				time.Sleep(time.Second)
			}
		})
	})
}
