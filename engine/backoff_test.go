package engine

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"leasehold/channel"
)

func TestBackoff(t *testing.T) {
	t.Run("jitter is never above the cap, nor below half the base", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			fails := rapid.IntRange(1, 200).Draw(t, "fails")
			d := delayFor(r, channel.Classify(errors.New("reset")), fails, 0)
			limit := backoffCap
			if fails > longAfter {
				limit = backoffLong
			}
			if d < backoffBase/2 || d > limit {
				t.Fatalf("got %v after %d failures, want %v to %v", d, fails, backoffBase/2, limit)
			}
		})
	})
	t.Run("an explicit wait gets positive jitter only", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			after := time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "after"))
			d := delayFor(r, channel.Classify(channel.RateLimited(errors.New("429"), after)), 1, 0)
			if d < after || d > after+max(after/10, time.Second) {
				t.Fatalf("got %v for a wait of %v", d, after)
			}
		})
	})
	t.Run("what a person must mend is tried after 5 min, doubling to 6 h", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for i, want := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute, 320 * time.Minute, 6 * time.Hour, 6 * time.Hour} {
			d := delayFor(r, channel.Classify(channel.Rejected("auth", errors.New("no"))), i+1, i+1)
			if d < want || d > want+want/10 {
				t.Errorf("rejection %d: got %v, want %v and a little", i+1, d, want)
			}
		}
	})
	t.Run("a rate limit that says nothing backs off", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		if d := delayFor(r, channel.Classify(channel.RateLimited(errors.New("429"), 0)), 5, 0); d < time.Second {
			t.Errorf("got %v, want a backoff", d)
		}
	})
}
