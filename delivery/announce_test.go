package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// alwaysDown answers as a target that cannot be reached.
func alwaysDown(context.Context, Delivery) Result {
	return Result{Outcome: Down, Reason: "connection refused"}
}

// said is an announcement whose only fact is a text.
func said(typ, text string) Announcement {
	return Announcement{Type: typ, System: json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))}
}

// heard lists the texts of the announcements that a sink was sent, as Taken or not.
func heard(t *testing.T, tries []Delivery) (texts []string) {
	t.Helper()
	for _, d := range tries {
		var e struct {
			Data struct{ System struct{ Text string } }
		}
		if err := unmarshal(d.Envelope, &e); err != nil {
			t.Fatalf("got %q, want an envelope: %v", d.Envelope, err)
		}
		texts = append(texts, e.Data.System.Text)
	}
	return texts
}

func TestAnnounce(t *testing.T) {
	t.Run("only targets that name a system event get it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sinks := map[string]*fakeSink{}
			var targets []Target
			for name, events := range map[string][]string{
				"all": nil, "star": {"*"}, "system": {"system.*"}, "link": {"system.link"}, "node": {"message", "system.node"},
			} {
				sinks[name] = &fakeSink{}
				targets = append(targets, Target{Name: name, Sink: sinks[name], Events: events})
			}
			b := start(t, newOutbox(), Options{}, targets...)
			b.Announce(said("system.link", "down"))
			synctest.Wait()
			for name, sink := range sinks {
				same(t, "sent to "+name, len(sink.tries()), map[string]int{"system": 1, "link": 1}[name])
			}
		})
	})

	t.Run("its envelope has the installation, the node and what happened", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{}
			b := start(t, newOutbox(), Options{Node: Node{Name: "gw", Labels: map[string]string{"site": "b"}}}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			at := time.Date(2026, 11, 30, 9, 12, 44, 0, time.UTC)
			b.Announce(Announcement{
				Type: "system.link", Time: at, About: Origin{ID: "acme", Type: "slack", Labels: map[string]string{"tenant": "a"}}, System: json.RawMessage(`{"to":"blocked"}`),
			})
			b.Announce(Announcement{Type: "system.node", Time: at, Text: "it runs", System: json.RawMessage(`{"event":"started"}`)})
			synctest.Wait()
			tries := sink.tries()
			same(t, "sent", len(tries), 2)
			for i, want := range []string{
				`{"type":"system.link","timestamp":"2026-11-30T09:12:44.000Z","data":{"id":"ID","installation":{"id":"acme","type":"slack","labels":{"tenant":"a"}},"node":{"name":"gw","labels":{"site":"b"}},"system":{"to":"blocked"}}}`,
				`{"type":"system.node","timestamp":"2026-11-30T09:12:44.000Z","data":{"id":"ID","node":{"name":"gw","labels":{"site":"b"}},"text":"it runs","system":{"event":"started"}}}`,
			} {
				same(t, "envelope", strings.Replace(string(tries[i].Envelope), tries[i].EventID, "ID", 1), want)
				if !strings.HasPrefix(tries[i].EventID, "sys_") || !strings.HasPrefix(tries[i].ID, "msg_") {
					t.Errorf("got the ids %s and %s, want sys_… and msg_…", tries[i].EventID, tries[i].ID)
				}
			}
			same(t, "installation", tries[0].Installation, "acme")
			if tries[0].ID == tries[1].ID {
				t.Errorf("got %s twice, want an id for each", tries[0].ID)
			}
		})
	})

	t.Run("one that finds the target down is repeated under one id until it is taken, and those behind it keep their order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var up atomic.Bool
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				if up.Load() {
					return Result{Outcome: Taken}
				}
				return alwaysDown(ctx, d)
			}}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			for _, text := range []string{"a", "b", "c"} {
				b.Announce(said("system.node", text))
			}
			time.Sleep(time.Hour)
			waits := len(sink.tries())
			if waits < 50 || waits > 150 {
				t.Errorf("got %d attempts in an hour, want about one in 30 to 60 s", waits)
			}
			same(t, "waiting", b.Stats().Targets[0].Announcements, 3)
			up.Store(true)
			time.Sleep(2 * time.Minute)
			tries := sink.tries()
			sameList(t, "at last", heard(t, tries[waits:]), []string{"a", "b", "c"})
			for _, d := range tries[:waits+1] {
				same(t, "id", d.ID, tries[0].ID)
				same(t, "envelope", string(d.Envelope), string(tries[0].Envelope))
			}
			same(t, "waiting at the end", b.Stats().Targets[0].Announcements, 0)
		})
	})

	t.Run("one that is refused is passed by the others after three tries, and goes on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{}
			sink.answer = func(_ context.Context, d Delivery) Result {
				if strings.Contains(string(d.Envelope), "bad") {
					return Result{Outcome: Refused, Reason: "answered 400"}
				}
				return Result{Outcome: Taken}
			}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			b.Announce(said("system.node", "bad"))
			b.Announce(said("system.node", "good"))
			time.Sleep(10 * time.Second)
			sameList(t, "before", heard(t, sink.tries()), []string{"bad", "bad"})
			time.Sleep(time.Minute)
			sameList(t, "after", heard(t, sink.tries()), []string{"bad", "bad", "bad", "good"})
			b.Announce(said("system.node", "late"))
			synctest.Wait()
			sameList(t, "at once", heard(t, sink.tries())[4:], []string{"late"})
			attempts := []int{}
			time.Sleep(2 * announceFor)
			for _, d := range sink.tries() {
				if strings.Contains(string(d.Envelope), "bad") {
					attempts = append(attempts, d.Attempt)
				}
			}
			if n := len(attempts); n < 7 || n > 12 || attempts[n-1] != n {
				t.Errorf("got the attempts %v, want some more until it is a day old, counted", attempts)
			}
			same(t, "waiting after a day", b.Stats().Targets[0].Announcements, 0)
		})
	})

	t.Run("of too many the oldest give way, and the next one says how many did", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var up atomic.Bool
			var taken []Delivery
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				if up.Load() {
					taken = append(taken, d)
					return Result{Outcome: Taken}
				}
				return alwaysDown(ctx, d)
			}}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			for i := range announceMax + 30 {
				b.Announce(said("system.gap", fmt.Sprint(i)))
			}
			synctest.Wait()
			same(t, "waiting", b.Stats().Targets[0].Announcements, announceMax)
			up.Store(true)
			time.Sleep(time.Hour)
			synctest.Wait()
			missed := 0
			for _, d := range taken {
				var e struct{ Data struct{ Missed int } }
				if err := unmarshal(d.Envelope, &e); err != nil {
					t.Fatal(err)
				}
				missed += e.Data.Missed
			}
			texts := heard(t, taken)
			same(t, "the last", texts[len(texts)-1], fmt.Sprint(announceMax+29))
			same(t, "sent and missed", len(texts)+missed, announceMax+30)
		})
	})

	t.Run("a target is not told of what is about it alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			app, ops := &fakeSink{}, &fakeSink{}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: app, Events: []string{"system.*"}}, Target{Name: "ops", Sink: ops, Events: []string{"system.*"}})
			a := said("system.target", "app is down")
			a.Except = "app"
			b.Announce(a)
			synctest.Wait()
			same(t, "sent to app", len(app.tries()), 0)
			same(t, "sent to ops", len(ops.tries()), 1)
		})
	})

	t.Run("the store is neither asked nor told, and may be ill", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			box.setFault(fails, "pending", "payloads", "mark")
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			b.Announce(said("system.store", "full"))
			time.Sleep(time.Minute)
			same(t, "sent", len(sink.tries()), 1)
			for _, op := range []string{"pending", "payloads", "mark"} {
				same(t, op, box.called(op), 0)
			}
		})
	})

	t.Run("what is announced before Run is sent by it, and last words when it ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{}
			d, err := New(newOutbox(), []Target{{Name: "app", Sink: sink, Events: []string{"system.*"}}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			d.Announce(said("system.node", "started"))
			b := launch(t, d)
			synctest.Wait()
			sameList(t, "at the start", heard(t, sink.tries()), []string{"started"})
			b.Announce(said("system.node", "stopping"))
			b.end()
			sameList(t, "at the end", heard(t, sink.tries()), []string{"started", "stopping"})
		})
	})

	t.Run("a target that hangs, or waits for its next attempt, holds up no stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hangs := &fakeSink{answer: func(ctx context.Context, _ Delivery) Result { <-ctx.Done(); return Result{Outcome: Slow} }}
			b := start(t, newOutbox(), Options{},
				Target{Name: "hangs", Sink: hangs, Events: []string{"system.*"}}, Target{Name: "down", Sink: &fakeSink{answer: alwaysDown}, Events: []string{"system.*"}})
			b.Announce(said("system.node", "started"))
			time.Sleep(time.Second)
			begun := time.Now()
			b.end()
			same(t, "the stop took", time.Since(begun), lastWords)
		})
	})

	t.Run("a target that answers 410 is disabled, and told nothing more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: Gone, Reason: "answered 410"} }}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			b.Announce(said("system.node", "a"))
			synctest.Wait()
			b.Announce(said("system.node", "b"))
			time.Sleep(time.Hour)
			same(t, "sent", len(sink.tries()), 1)
			same(t, "state", b.Stats().Targets[0].State, Disabled)
		})
	})

	t.Run("what waits for a target goes at once when the target is changed, and is forgotten when it is removed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			old, other, w := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: Gone, Reason: "answered 410"} }}, &fakeSink{}, &watcher{}
			gone := &fakeSink{answer: alwaysDown}
			target := func(name string, s Sink) Target { return Target{Name: name, Sink: s, Events: []string{"system.*"}} }
			b := start(t, newOutbox(), Options{Observer: w}, target("app", old), target("gone", gone))
			b.Announce(said("system.node", "a"))
			time.Sleep(time.Minute)
			c, err := b.Prepare(Settings{Targets: []Target{target("app", other)}})
			if err != nil {
				t.Fatal(err)
			}
			c.Apply()
			synctest.Wait()
			same(t, "sent to the new one", len(other.got()), 1)
			same(t, "under the old id", other.tries()[0].ID, old.tries()[0].ID)
			tries := len(gone.tries())
			time.Sleep(time.Hour)
			same(t, "sent to the removed one", len(gone.tries()), tries)
			w.mu.Lock()
			defer w.mu.Unlock()
			sameList(t, "changes", w.changes, []TargetChange{{"app", Closed, Disabled, "answered 410", stepAgain}, {"app", Disabled, Closed, "", ""}, {"gone", Closed, Unknown, "", stepStart}})
		})
	})

	t.Run("a sink that panics costs one attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				if calls++; calls == 1 {
					panic("oops")
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Events: []string{"system.*"}})
			b.Announce(said("system.node", "a"))
			time.Sleep(time.Minute)
			same(t, "taken", len(sink.got()), 1)
		})
	})
}

// TestAnnounceHTTP sends one over the wire, and repeats it under its id.
func TestAnnounceHTTP(t *testing.T) {
	var mu sync.Mutex
	var ids, attempts []string
	got := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ids, attempts = append(ids, r.Header.Get("Webhook-Id")), append(attempts, r.Header.Get("Leasehold-Attempt"))
		if len(ids) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		got <- struct{}{}
	}))
	defer server.Close()
	b := start(t, newOutbox(), Options{}, Target{Name: "app", Kind: "http", URL: server.URL, Events: []string{"system.*"}})
	b.Announce(said("system.node", "started"))
	for range 2 {
		select {
		case <-got:
		case <-time.After(time.Minute):
			t.Fatal("got no call within a minute")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	sameList(t, "ids", ids, []string{ids[0], ids[0]})
	sameList(t, "attempts", attempts, []string{"1", "1"}) // one that found nobody is none
}

// watcher is an Observer that keeps what it is told.
type watcher struct {
	mu      sync.Mutex
	changes []TargetChange
	dead    []DeadLetter
}

func (w *watcher) Target(c TargetChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c)
}

func (w *watcher) Died(l DeadLetter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = append(w.dead, l)
}

func TestObserver(t *testing.T) {
	t.Run("each change of a circuit is told once, with its reason", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var outcome atomic.Int64
			outcome.Store(int64(Down))
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				return Result{Outcome: Outcome(outcome.Load()), Reason: "because"}
			}}
			box, w := newOutbox(), &watcher{}
			b := start(t, box, Options{Observer: w}, Target{Name: "app", Sink: sink})
			box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(10 * time.Minute)
			outcome.Store(int64(Taken))
			time.Sleep(2 * time.Minute)
			outcome.Store(int64(Gone))
			b.Accepted(box.term("acme"), box.say("acme", "C1", "app"))
			time.Sleep(time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			sameList(t, "changes", w.changes, []TargetChange{
				{"app", Closed, Open, "because", stepStart}, {"app", Open, Closed, "", ""}, {"app", Closed, Disabled, "because", stepAgain},
			})
		})
	})

	t.Run("a delivery that is given up is told with its event and its reason", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, w := newOutbox(), &watcher{}
			b := start(t, box, Options{Observer: w}, Target{Name: "app", Sink: &fakeSink{answer: refuses("evt_1")}, MaxAge: time.Hour})
			box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(2 * time.Hour)
			w.mu.Lock()
			defer w.mu.Unlock()
			same(t, "told", len(w.dead), 1)
			l := w.dead[0]
			l.At = time.Time{}
			same(t, "letter", l, DeadLetter{
				Target: "app", Delivery: "msg_1_app", Event: "evt_1", Installation: "acme", Attempts: 6, Reason: "older than 1h; it failed 6 times",
			})
		})
	})
}
