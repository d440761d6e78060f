//go:build unix

package evidence_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/delivery"
	"leasehold/store/postgres/pgtest"
)

// TestWaitingKilled kills the program while a thousand events wait for a target that
// answers 500, when that has just begun and when it has gone on for a while.
func TestWaitingKilled(t *testing.T) {
	const bots, each = 10, 100
	killed := func(t *testing.T, url string) {
		w := newWorld(t, "", bots)
		w.url = url
		if url != "" {
			w.env = []string{"LEASEHOLD_STORE_URL=" + url}
		}
		var down atomic.Bool
		down.Store(true)
		w.program.answer = func(string) int {
			if down.Load() {
				return http.StatusInternalServerError
			}
			return 0
		}
		// asked waits for n more attempts: five of them are an outage.
		asked := func(n int) {
			before := w.program.asked()
			await(t, time.Minute, func() (string, bool) {
				got := w.program.asked() - before
				return fmt.Sprintf("got %d attempts, want %d", got, n), got >= n
			})
		}

		p := w.start()
		w.connected()
		w.say(each)
		asked(5)
		await(t, time.Minute, func() (string, bool) {
			return fmt.Sprintf("got %d acknowledged, want %d", w.acked(), w.pushed), w.acked() == w.pushed
		})
		p.kill()
		p = w.start()
		asked(1)
		p.kill()

		waiting := w.kept()
		want(t, "events in the store", len(waiting), bots*each)
		for event, r := range waiting {
			if r.state != delivery.Pending {
				t.Errorf("%s: got %v after the kill, want it waiting", event, r.state)
			}
		}
		down.Store(false)
		p = w.start()
		w.arrived(2 * time.Minute)
		p.stop()
		w.judge()
		for event, r := range waiting {
			if id := w.program.id(event); id != r.webhook {
				t.Errorf("%s: got webhook id %q, and it waited under %q", event, id, r.webhook)
			}
		}
	}
	t.Run("all that waited for a target which answered 500 arrives after a kill, each under its id", func(t *testing.T) { killed(t, "") })
	t.Run("so it does on Postgres", func(t *testing.T) { killed(t, pgtest.New(t).Database(t)) })
}
