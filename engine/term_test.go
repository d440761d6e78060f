package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// slow is a program that takes its time to answer.
type slow struct {
	Holder
	after time.Duration
}

func (s slow) Ask(ctx context.Context, _ channel.Term, _ channel.Event) (json.RawMessage, bool) {
	timer := time.NewTimer(s.after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return json.RawMessage(`1`), true
	case <-ctx.Done():
		return nil, false
	}
}

func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		after, took time.Duration
		answered    bool
		fenced      bool
	}{
		"an answer is waited for":                               {2 * time.Second, 2 * time.Second, true, false},
		"no longer than a platform waits for one":               {time.Hour, 2500 * time.Millisecond, false, false},
		"and not at all by a node that is not trusted any more": {time.Second, 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trusted := &trust{}
				if !c.fenced {
					trusted.set(1)
				}
				term := &term{s: &Supervisor{holder: slow{after: c.after}}, gate: gate{trust: trusted, boot: func() Instant { return 0 }}, dead: t.Context()}
				began := time.Now()
				_, answered := term.Ask(t.Context(), channel.Event{})
				if took := time.Since(began); answered != c.answered || took != c.took {
					t.Errorf("got an answer: %v, after %v, want %v after %v", answered, took, c.answered, c.took)
				}
			})
		})
	}
}

func TestSaid(t *testing.T) {
	for _, c := range []struct {
		name string
		info channel.Info
		want string
	}{
		{"a platform that tells nothing adds nothing", channel.Info{}, "[took_ms 7]"},
		{"what it tells is logged", channel.Info{Identity: "bot", Connections: 2}, "[took_ms 7 identity bot connections 2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(said(c.info, "took_ms", 7)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
