//go:build unix

package evidence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

// takeoverWithin is what the second copy takes after the death of the first; a loaded
// machine makes it longer now and then, but not each time.
const takeoverWithin = time.Second

func TestTwoCopies(t *testing.T) {
	t.Run("under load the second copy waits, says for whom, and goes on within a second of a kill", func(t *testing.T) {
		w := newWorld(t, "", 5)
		holder := w.start()
		w.connected()
		var times []time.Duration
		for range 3 {
			next := w.start()
			next.saying(`"waiting for the store"`, fmt.Sprintf("process %d on ", holder.pid()))
			acks := w.steps.nth(websocketfake.StepAck, 1+rand.N(50))
			w.say(20)
			w.reach(acks)
			holder.kill()
			w.steps.begin() // the holder's connections were counted before
			var took time.Duration
			await(t, longest, func() (_ string, ok bool) {
				took, ok = w.steps.back()
				return "the second copy has no connection", ok
			})
			if took >= racedBackWithin {
				t.Errorf("got %v until the first connection of the second copy, want less than %v", took, racedBackWithin)
			}
			times = append(times, took)
			next.saying(`"store taken over"`)
			t.Logf("first connection %v after the death of the holder", took.Round(time.Millisecond))
			holder = next
		}
		if d := slices.Min(times); d >= takeoverWithin && !raced {
			t.Errorf("got %v until the first connection of the second copy at best, want less than %v", d, takeoverWithin)
		}
		w.arrived(time.Minute)
		holder.stop()
		w.judge()
	})
}

func TestStandingStill(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("a process that stands still for five seconds loses nothing, neither its connections nor its store", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "", 10)
		p := w.start()
		w.connected()
		other := w.start()
		other.saying(`"waiting for the store"`, fmt.Sprintf("process %d on ", p.pid()))
		acks := w.steps.nth(websocketfake.StepAck, 50)
		w.say(20)
		w.reach(acks)
		p.signal(syscall.SIGSTOP)
		for range 50 {
			w.say(1)
			pause(t, 100*time.Millisecond)
		}
		acked := w.acked()
		p.signal(syscall.SIGCONT)
		if acked == w.pushed {
			t.Errorf("got all %d acknowledged while it stood still, want some not", acked)
		}
		w.arrived(time.Minute)
		p.saying(`"the process stood still"`)
		other.alive()
		for _, bot := range w.bots {
			want(t, "connections of "+bot, len(w.platform.Connections(bot)), 1)
		}
		w.kept()
		other.stop()
		p.stop()
		w.judge()
	})
}

func TestAskedToStop(t *testing.T) {
	t.Run("SIGTERM under load is a success within the drain time, and loses nothing", func(t *testing.T) {
		w := newWorld(t, "", 10)
		var slowest time.Duration
		rounds := 5
		if raced {
			rounds = 2
		}
		left := 0
		for range rounds {
			p := w.start()
			for _, bot := range w.bots { // a dial that is broken off says no goodbye
				p.saying(`"connected","installation":"` + bot + `"`)
			}
			acks := w.steps.nth(websocketfake.StepAck, 1+rand.N(300))
			w.say(40)
			w.reach(acks)
			asked := time.Now()
			p.signal(syscall.SIGTERM)
			for range 50 { // they do not stop for us
				if p.over() {
					break
				}
				w.say(1)
				pause(t, time.Millisecond)
			}
			want(t, "exit code", p.exit(drainTimeout), 0)
			slowest = max(slowest, time.Since(asked))
			w.kept()
			left += w.pushed - w.acked()
		}
		if left == 0 {
			t.Error("got everything acknowledged at every stop, want load")
		}
		p := w.start()
		w.arrived(time.Minute)
		p.stop()
		w.judge()
		goodbyes := 0
		for _, bot := range w.bots {
			all := w.platform.Connections(bot)
			want(t, "close code that "+bot+" heard when all was quiet", all[len(all)-1].CloseCode, 1001)
			for _, c := range all[:len(all)-1] { // under load there may be no time for it
				if c.CloseCode == 1001 {
					goodbyes++
				}
			}
		}
		t.Logf("%d events, %d stops under load, the slowest in %v, %d of %d connections with a goodbye; %d events left for the next process; %d webhooks repeated",
			w.pushed, rounds, slowest.Round(time.Millisecond), goodbyes, rounds*len(w.bots), left, w.program.repeats)
	})
}
