//go:build unix

package evidence_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

const (
	// killsEnv is how often the process is killed; "make soak" says 200.
	killsEnv = "LEASEHOLD_KILLS"
	// defaultKills take about half a minute; racedKills, with the race detector in the
	// program, too: there it is races that are looked for.
	defaultKills, racedKills = 25, 8
	// perLife is what all bots together say between two kills: 40,000 in 200.
	perLife = 200
	killed  = 20 // bots
	// backWithin is what the first connection takes, in most lives, after the process
	// was executed. "make soak" wants it, which has the machine for itself; "make bench"
	// says what it takes on one that has the time.
	backWithin = time.Second
	// racedBackWithin is that for a program with the race detector in it, which
	// makes SQLite ten times slower, and for any life on a loaded machine.
	racedBackWithin = 10 * time.Second
)

func TestKilled(t *testing.T) {
	t.Run("what was acknowledged is stored once and delivered under one id, however often and whenever the process is killed", func(t *testing.T) {
		kills := defaultKills
		if raced {
			kills = racedKills
		}
		soaked := false
		if text := os.Getenv(killsEnv); text != "" {
			soaked = true
			n, err := strconv.Atoi(text)
			must(t, err)
			kills = n
		}
		w := newWorld(t, "", killed)
		rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		// One in a hundred fails, once: its second try is due after 5 s, a third one
		// would be after half a minute.
		w.program.answer = func(event string) int {
			if w.program.failed[event] || rng.Float64() >= 0.01 {
				return 0
			}
			w.program.failed[event] = true
			return http.StatusInternalServerError
		}
		bound := racedBackWithin
		if soaked && !raced {
			bound = backWithin
		}
		began := time.Now()
		var back []time.Duration
		for range kills {
			w.say(perLife / killed / 2)
			p := w.start()
			w.until(p, w.moment(), perLife/killed/2)
			p.kill()
			if d, ok := w.steps.back(); ok {
				back = append(back, d)
				if d >= racedBackWithin {
					t.Errorf("first connection after the start: got %v, want less than %v; the process began at %s and said\n%s",
						d, racedBackWithin, p.began.UTC().Format(time.RFC3339Nano), p.said())
				}
			}
		}
		lived := time.Since(began)
		p := w.start()
		w.arrived(time.Minute + time.Duration(kills)*time.Second)
		w.connected()
		d, _ := w.steps.back()
		back = append(back, d)
		drained := time.Since(began) - lived
		p.stop()
		w.judge()

		slices.Sort(back)
		if d := back[len(back)/2]; d >= bound {
			t.Errorf("first connection after the start: got a median of %v, want less than %v", d, bound)
		}
		if soaked && len(back) < kills/3 && !raced {
			t.Errorf("got a connection in %d of %d lives, want one in most", len(back), kills+1)
		}
		t.Logf("%d events over %d installations, %d kills (%d before the first connection) in %v, the rest delivered in %v",
			w.pushed, killed, kills, kills+1-len(back), lived.Round(time.Millisecond), drained.Round(time.Millisecond))
		t.Logf("first connection after the start of %d processes: median %v, slowest %v", len(back), back[len(back)/2].Round(time.Millisecond), back[len(back)-1].Round(time.Millisecond))
		t.Logf("platform: %d connections, %d events sent; program: %d requests, %d answered 500, %d of what it had already",
			w.steps.total(websocketfake.StepUpgrade), w.steps.total(websocketfake.StepEvent), w.program.requests, w.program.refused, w.program.repeats)
	})
}

// moment is when the next kill comes: right after the start, at any time, or at
// some step of either end, which is where it hurts.
func (w *world) moment() <-chan struct{} {
	after := func(d time.Duration) <-chan struct{} {
		over := make(chan struct{})
		timer := time.AfterFunc(d, func() { close(over) })
		w.Cleanup(func() { timer.Stop() })
		return over
	}
	switch rand.N(4) {
	case 0:
		return after(rand.N(80 * time.Millisecond))
	case 1:
		return after(rand.N(1200 * time.Millisecond))
	default:
		all := append(websocketfake.Steps(), stepRequest, stepAnswer)
		step := all[rand.N(len(all))]
		most := perLife
		if step == websocketfake.StepDial || step == websocketfake.StepUpgrade || step == websocketfake.StepHello || step == websocketfake.StepPing {
			most = len(w.bots)
		}
		return w.steps.nth(step, 1+rand.N(most))
	}
}

// lifetime ends a life in which the step that was waited for does not come.
const lifetime = 3 * time.Second

// until lets the bots speak, n more times each, until the moment has come.
func (w *world) until(p *process, moment <-chan struct{}, n int) {
	w.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(lifetime)
	defer late.Stop()
	defer func() { w.say(n) }() // what was not said yet waits for the next life
	for {
		select {
		case <-moment:
			return
		case <-late.C:
			return
		case <-p.ended:
			p.alive()
		case <-tick.C:
			if n > 0 {
				w.say(1)
				n--
			}
		}
	}
}
