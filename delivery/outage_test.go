package delivery

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// program is the user's: it listens on an in-memory network, notes what it
// takes, and answers as it is told to.
type program struct {
	status atomic.Int64 // 0 = 200
	handle func(w http.ResponseWriter, r *http.Request, id string) bool

	mu   sync.Mutex
	got  []string // webhook ids, in the order in which they were taken
	srv  *http.Server
	done chan struct{}
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	id := r.Header.Get("webhook-id")
	if p.handle != nil && p.handle(w, r, id) {
		return
	}
	if s := p.status.Load(); s != 0 {
		w.WriteHeader(int(s))
		return
	}
	p.mu.Lock()
	p.got = append(p.got, id)
	p.mu.Unlock()
}

func (p *program) listen(t *testing.T, l net.Listener) {
	t.Helper()
	p.srv, p.done = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	go func() {
		defer close(p.done)
		_ = p.srv.Serve(l)
	}()
}

func (p *program) close() {
	_ = p.srv.Close()
	<-p.done
}

func (p *program) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// village is a store with events of several conversations, and what was said in each.
func village(box *fakeOutbox, conversations, each int) (byConversation map[string][]string) {
	byConversation = map[string][]string{}
	for range each {
		for c := range conversations {
			name := fmt.Sprintf("C%d", c)
			seq := box.say("acme", name, "app")
			byConversation[name] = append(byConversation[name], fmt.Sprintf("msg_%d_app", seq))
		}
	}
	return byConversation
}

func inOrder(t *testing.T, got []string, want map[string][]string) {
	t.Helper()
	total := 0
	for name, ids := range want {
		total += len(ids)
		var seen []string
		for _, id := range got {
			if slices.Contains(ids, id) {
				seen = append(seen, id)
			}
		}
		sameList(t, "arrived of "+name, seen, ids)
	}
	same(t, "arrived altogether", len(got), total)
}

func noAttempts(t *testing.T, box *fakeOutbox, what string) {
	t.Helper()
	for _, r := range box.waiting() {
		if r.Attempts != 0 {
			t.Errorf("%s: got %d attempts of %d, want none", what, r.Attempts, r.Seq)
		}
	}
}

func TestOutage(t *testing.T) {
	outage := func(policy OnFailure, conversations int, down func(*network, *program) (up func())) func(*testing.T) {
		return func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, box, app := newNetwork(), newOutbox(), &program{}
				app.listen(t, net)
				defer app.close()
				up := down(net, app)
				b := start(t, box, Options{Dial: net.Dial}, Target{Name: "app", Kind: "http", URL: "http://app.test/events", OnFailure: policy})
				defer b.end()
				want := village(box, conversations, 10)
				term := b.hold("acme")
				for range 60 { // life goes on
					time.Sleep(time.Minute)
					for c, ids := range want {
						want[c] = append(ids, fmt.Sprintf("msg_%d_app", box.say("acme", c, "app")))
					}
					b.Accepted(term, box.last())
				}
				same(t, "arrived while it is down", len(app.taken()), 0)
				same(t, "dead after an hour", box.count("app", Dead), 0)
				same(t, "circuit", b.Stats().Targets[0].State, Open)
				noAttempts(t, box, "after an hour")
				up()
				time.Sleep(2 * time.Minute)
				inOrder(t, app.taken(), want)
				same(t, "delivered", box.count("app", Delivered), conversations*70)
				same(t, "circuit", b.Stats().Targets[0].State, Closed)
			})
		}
	}
	refused := func(n *network, _ *program) func() {
		n.refuse.Store(true)
		return func() { n.refuse.Store(false) }
	}
	swallowed := func(n *network, _ *program) func() {
		n.swallow.Store(true)
		return func() { n.swallow.Store(false) }
	}
	answers := func(status int64) func(*network, *program) func() {
		return func(_ *network, p *program) func() {
			p.status.Store(status)
			return func() { p.status.Store(0) }
		}
	}
	mute := func(_ *network, p *program) func() {
		var on atomic.Bool
		on.Store(true)
		p.handle = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			muted := on.Load()
			if muted {
				<-r.Context().Done()
			}
			return muted
		}
		return func() { on.Store(false) }
	}
	t.Run("an hour of refused connections loses nothing, burns no attempts and drains in order", outage(Skip, 7, refused))
	t.Run("so does an hour of swallowed connections", outage(Skip, 7, swallowed))
	t.Run("so does an hour of 503", outage(Skip, 7, answers(503)))
	t.Run("so does an hour of 429", outage(Skip, 7, answers(429)))
	t.Run("so does an hour of 500", outage(Skip, 7, answers(500)))
	t.Run("so does an hour of 500 under hold", outage(Hold, 7, answers(500)))
	t.Run("so does an hour of 500 with a single conversation", outage(Skip, 1, answers(500)))
	t.Run("so does an hour without any answer", outage(Skip, 7, mute))

	t.Run("a target that is down is looked at once a minute, not hammered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: Down, Reason: "refused"} }}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Concurrency: 1})
			village(box, 50, 2)
			b.hold("acme")
			time.Sleep(time.Hour)
			if n := len(sink.tries()); n < 60 || n > 130 {
				t.Errorf("got %d looks in an hour, want one in 30 to 60 seconds", n)
			}
			same(t, "looks at the same time", sink.most(), 1)
		})
	})

	t.Run("Retry-After of a target that asks to be left alone is honoured and burns no attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, began := newOutbox(), time.Now()
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				if time.Since(began) < 10*time.Minute {
					return Result{Outcome: Down, Reason: "answered 429", After: 10 * time.Minute}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Concurrency: 3})
			village(box, 10, 1)
			b.hold("acme")
			time.Sleep(10*time.Minute - time.Second)
			if n := len(sink.tries()); n > 3 {
				t.Errorf("got %d tries before the time, want those that were on their way", n)
			}
			noAttempts(t, box, "meanwhile")
			time.Sleep(2 * time.Minute)
			same(t, "arrived", len(sink.got()), 10)
		})
	})

	t.Run("what a target says when it is looked at comes before our own patience", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, began := newOutbox(), time.Now()
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				if time.Since(began) < 10*time.Minute {
					return Result{Outcome: Down, Reason: "answered 503", After: 5 * time.Second}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Concurrency: 1})
			village(box, 3, 1)
			b.hold("acme")
			time.Sleep(10*time.Minute + 6*time.Second)
			same(t, "arrived", len(sink.got()), 3)
			if n := len(sink.tries()); n < 100 || n > 125 {
				t.Errorf("got %d tries, want one every five seconds", n)
			}
		})
	})

	t.Run("a shorter Retry-After of a call that was on its way does not undo a longer one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				if d.EventID == "evt_1" {
					return Result{Outcome: Down, Reason: "answered 429", After: 10 * time.Minute}
				}
				takes(time.Second)(ctx, d)
				return Result{Outcome: Down, Reason: "answered 429", After: time.Second}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			village(box, 3, 1)
			b.hold("acme")
			time.Sleep(10*time.Minute - time.Second)
			same(t, "tries", len(sink.tries()), 3)
		})
	})

	t.Run("calls that break off because the target goes down are no attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, began := newOutbox(), time.Now()
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				switch {
				case time.Since(began) > 400*time.Millisecond:
					return Result{Outcome: Taken}
				case d.EventID == "evt_1":
					return Result{Outcome: Down, Reason: "refused"}
				}
				takes(300*time.Millisecond)(ctx, d)
				return Result{Outcome: Broken, Reason: "reset"}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			village(box, 4, 1)
			b.hold("acme")
			time.Sleep(time.Minute)
			for seq := range int64(4) {
				same(t, fmt.Sprint("attempts of ", seq+1), box.row(seq+1, "app").Attempts, 1)
			}
		})
	})

	t.Run("an event that is tried again while its outage is recognised gets its attempt back, too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, began := newOutbox(), time.Now()
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				if time.Since(began) > 20*time.Second {
					return Result{Outcome: Taken}
				}
				if d.EventID == "evt_1" && d.Attempt == 2 {
					takes(10*time.Second)(ctx, d)
				}
				return Result{Outcome: Broken, Reason: "answered 500"}
			}}
			b := start(t, box, Options{Random: func() float64 { return 0 }}, Target{Name: "app", Sink: sink})
			term := b.hold("acme")
			for i := range 5 {
				b.Accepted(term, box.say("acme", fmt.Sprint("C", i), "app"))
				time.Sleep(1500 * time.Millisecond)
			}
			same(t, "circuit", b.Stats().Targets[0].State, Open)
			time.Sleep(11 * time.Second)
			noAttempts(t, box, "in the outage")
			time.Sleep(2 * time.Minute)
			for seq := range int64(5) {
				same(t, fmt.Sprint("attempts of ", seq+1), box.row(seq+1, "app").Attempts, 1)
			}
			same(t, "arrived", len(sink.got()), 5)
		})
	})

	t.Run("410 disables the target, says so, and keeps its deliveries", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, log := newOutbox(), &logbook{}
			sink := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: Gone, Reason: "answered 410: gone"} }}
			b := start(t, box, Options{Log: log.logger()}, Target{Name: "app", Sink: sink, Concurrency: 1})
			village(box, 3, 2)
			b.hold("acme")
			time.Sleep(time.Hour)
			same(t, "tries", len(sink.tries()), 1)
			same(t, "waiting", box.count("app", Pending), 6)
			noAttempts(t, box, "after the 410")
			same(t, "state", b.Stats().Targets[0].State, Disabled)
			same(t, "records of it", len(log.find("target disabled")), 1)
		})
	})

	t.Run("an event that fails every time does not keep the circuit open when it is all there is to probe with", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			var broken atomic.Bool
			broken.Store(true)
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if broken.Load() || d.EventID == "evt_1" {
					return Result{Outcome: Broken, Reason: "answered 500"}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			village(box, 1, 8)
			b.hold("acme")
			time.Sleep(30 * time.Minute)
			same(t, "circuit in the outage", b.Stats().Targets[0].State, Open)
			broken.Store(false)
			time.Sleep(3 * time.Minute)
			same(t, "circuit after it", b.Stats().Targets[0].State, Closed)
			sameList(t, "arrived", sink.got(), evt(2, 3, 4, 5, 6, 7, 8))
		})
	})

	t.Run("what an outage made a lane pass goes first when the target is back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			var b *bench
			var back atomic.Bool
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				if !back.Load() && b.Stats().Targets[0].State == Closed {
					return Result{Outcome: Broken, Reason: "answered 500"}
				}
				back.Store(true) // at the first look
				return Result{Outcome: Taken}
			}}
			d, err := New(box, []Target{{Name: "app", Sink: sink}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			b = &bench{Dispatcher: d}
			b = launch(t, d)
			village(box, 1, 5)
			b.hold("acme")
			time.Sleep(10 * time.Minute)
			sameList(t, "arrived", sink.got(), evt(1, 2, 3, 4, 5))
			same(t, "attempts of the first", box.row(1, "app").Attempts, 1)
			tries := sink.tries()
			same(t, "attempt that the program was told", tries[len(tries)-5].Attempt, 1)
		})
	})

	t.Run("an outage gives back what it used up, and nothing else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, began := newOutbox(), time.Now()
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				if time.Since(began) < 20*time.Second {
					return Result{Outcome: Refused, Reason: "answered 400"}
				}
				return Result{Outcome: Broken, Reason: "answered 500"}
			}}
			b := start(t, box, Options{Random: func() float64 { return 0 }}, Target{Name: "app", Sink: sink, OnFailure: Hold})
			village(box, 8, 1)
			b.hold("acme")
			time.Sleep(10 * time.Minute)
			same(t, "circuit", b.Stats().Targets[0].State, Open)
			for seq := range int64(8) {
				same(t, fmt.Sprint("attempts of ", seq+1), box.row(seq+1, "app").Attempts, 2)
			}
		})
	})

	t.Run("so it is for events that memory had let go of", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			box.lag = func() time.Duration { return 5 * time.Millisecond }
			var b *bench
			var back atomic.Bool
			sink := &fakeSink{}
			sink.answer = func(ctx context.Context, d Delivery) Result {
				switch {
				case back.Load():
					return Result{Outcome: Taken}
				case d.EventID == "evt_18": // closes the circuit that the fifth opens
					return takes(10*time.Millisecond)(ctx, d)
				case d.EventID == "evt_17":
					b.Wake("acme")
					takes(7*time.Millisecond)(ctx, d) // the others are forgotten, and not read again yet
					back.Store(true)
				}
				return Result{Outcome: Broken, Reason: "answered 500"}
			}
			d, err := New(box, []Target{{Name: "app", Sink: sink, OnFailure: Hold}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			d.limits = tight(windowSize, totalSize, 2)
			b = &bench{Dispatcher: d}
			b = launch(t, d)
			want := village(box, 4, 4)
			term := b.hold("acme")
			time.Sleep(time.Second) // four have failed, and wait
			for _, name := range []string{"C4", "C5"} {
				want[name] = []string{fmt.Sprintf("msg_%d_app", box.say("acme", name, "app"))}
			}
			b.Accepted(term, box.last())
			time.Sleep(time.Hour)
			var ids []string
			for _, id := range sink.got() {
				ids = append(ids, strings.Replace(id, "evt_", "msg_", 1)+"_app")
			}
			inOrder(t, ids, want)
			for seq := range int64(18) {
				same(t, fmt.Sprint("attempts of ", seq+1), box.row(seq+1, "app").Attempts, 1)
			}
		})
	})

	t.Run("five events in a row with one that is taken between are no outage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if d.EventID == "evt_3" {
					return Result{Outcome: Taken}
				}
				return Result{Outcome: Broken, Reason: "answered 500"}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Concurrency: 1})
			village(box, 6, 1)
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "circuit", b.Stats().Targets[0].State, Closed)
			same(t, "attempts that counted", int(b.Stats().Targets[0].Failed), 5)
		})
	})

	for _, o := range []Outcome{Down, Gone} {
		t.Run(fmt.Sprintf("what waits longer than max_age for a target that is %v dies, and says what kept it", o), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box := newOutbox()
				sink := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: o, Reason: "no luck"} }}
				b := start(t, box, Options{}, Target{Name: "app", Sink: sink, MaxAge: 2 * time.Hour, Concurrency: 4})
				village(box, 100, 50)
				term := b.hold("acme")
				time.Sleep(90 * time.Minute)
				later := box.say("acme", "C0", "app")
				b.Accepted(term, later)
				same(t, "dead before", box.count("app", Dead), 0)
				time.Sleep(31 * time.Minute)
				same(t, "dead after", box.count("app", Dead), 5000)
				same(t, "state of a later event", box.row(later, "app").state, Pending)
				for seq := range int64(5000) {
					if r := box.row(seq+1, "app"); r.err != "older than 2h; what kept it: no luck" || r.Attempts != 0 {
						t.Fatalf("got %q after %d attempts, want the reason and none", r.err, r.Attempts)
					}
				}
			})
		})
	}

	t.Run("one target's outage does not delay another target", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, good := newOutbox(), &fakeSink{}
			bad := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: Down, Reason: "refused"} }}
			b := start(t, box, Options{}, Target{Name: "bad", Sink: bad}, Target{Name: "good", Sink: good})
			for range 100 {
				box.say("acme", "C1", "bad", "good")
			}
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "arrived at the good one", len(good.got()), 100)
			same(t, "waiting for the bad one", box.count("bad", Pending), 100)
		})
	})
}
