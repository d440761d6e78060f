package herald

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/app/backlog"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
)

// town is where a herald is heard.
type town struct {
	*Herald
	t    *testing.T
	stop func()

	mu    sync.Mutex // guards cries
	cries []delivery.Announcement
}

func inTown(t *testing.T, f func(w *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		redact := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
		w := &town{Herald: New(redact, slog.New(slog.DiscardHandler)), t: t}
		w.Announce = func(a delivery.Announcement) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.cries = append(w.cries, a)
		}
		w.About = func(id string) (string, map[string]string) { return "slack", map[string]string{"of": id} }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		w.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("got %v, want a clean end", err)
			}
		})
		f(w)
		w.stop()
	})
}

// link changes the state of a link, as the engine tells it.
func (w *town) link(id string, states ...engine.State) {
	for i := 1; i < len(states); i++ {
		now := engine.LinkStatus{Installation: id, State: states[i], Since: time.Now().UTC()}
		if now.State == engine.Backoff || now.State == engine.Blocked {
			now.Reason, now.Detail = "auth", "token hunter2 is revoked"
		}
		w.Link(engine.LinkStatus{Installation: id, State: states[i-1]}, now)
	}
}

// heard returns what was announced since the last call, each as its type, its
// installation and its facts but for the times, which are seconds since a moment.
func (w *town) heard(began time.Time) (all []string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.cries {
		var facts map[string]any
		if err := json.Unmarshal(a.System, &facts); err != nil {
			w.t.Fatalf("got %q, want JSON: %v", a.System, err)
		}
		var said []string
		for k, v := range facts {
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(v)); err == nil {
				v = at.Sub(began)
			}
			if k != "next_step" && k != "detail" {
				said = append(said, fmt.Sprintf("%s=%v", k, v))
			}
		}
		slices.Sort(said)
		line := strings.TrimPrefix(a.Type, "system.") + " " + a.About.ID + ": " + strings.Join(said, " ")
		if a.Except != "" {
			line += " (not to " + a.Except + ")"
		}
		all = append(all, line)
	}
	w.cries = nil
	return all
}

func (w *town) expect(what string, began time.Time, want ...string) {
	w.t.Helper()
	if got := w.heard(began); !slices.Equal(got, want) {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

const (
	standby    = engine.Standby
	connecting = engine.Connecting
	connected  = engine.Connected
	backoff    = engine.Backoff
)

func TestHeraldLinks(t *testing.T) {
	t.Run("a link that is back within two minutes is no news, nor is one that starts", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.link("a", "", standby, connecting, connected)
			for range 20 {
				w.link("a", connected, backoff, connecting)
				time.Sleep(troubleAfter - time.Second)
				w.link("a", connecting, connected)
				time.Sleep(time.Minute)
			}
			w.expect("flaps", began)
		})
	})

	t.Run("one that stays away is told once, and that it is back", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.link("a", connected, backoff)
			time.Sleep(119 * time.Second)
			w.link("a", backoff, connecting)
			w.expect("before", began)
			time.Sleep(time.Second)
			w.expect("after two minutes", began, "link a: from=connected since=0s to=backoff")
			w.link("a", connecting, backoff, connecting, backoff)
			time.Sleep(time.Hour)
			w.expect("as it lasts", began)
			w.link("a", backoff, connecting, connected)
			w.expect("back", began, "link a: down_since=0s from=backoff since=1h2m0s to=connected")
			w.link("a", connected, backoff, connecting, connected)
			time.Sleep(time.Hour)
			w.expect("a flap afterwards", began)
		})
	})

	t.Run("one that needs a person is told at once, with its installation, what to do, and no secret", func(t *testing.T) {
		inTown(t, func(w *town) {
			w.link("a", connected, engine.Blocked)
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.cries) != 1 {
				t.Fatalf("got %d, want one", len(w.cries))
			}
			c := w.cries[0]
			if c.About.ID != "a" || c.About.Type != "slack" || c.About.Labels["of"] != "a" {
				t.Errorf("got %+v, want the installation with its type and labels", c.About)
			}
			var facts linkNews
			if err := json.Unmarshal(c.System, &facts); err != nil {
				t.Fatal(err)
			}
			if facts.Detail != "token [redacted] is revoked" || !strings.HasPrefix(facts.NextStep, "replace its credential") {
				t.Errorf("got %+v, want a detail without the secret and a next step", facts)
			}
		})
	})

	t.Run("what the store does to all links, and a stop, is not told of each", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			for i := range 100 {
				was, now := engine.LinkStatus{State: connected}, engine.LinkStatus{Installation: fmt.Sprint(i), State: backoff, Reason: "store_full"}
				w.Link(was, now)
			}
			time.Sleep(time.Hour)
			w.expect("a full store", began)
			w.link("blocked", connected, engine.Blocked)
			w.expect("one that is blocked", began, "link blocked: from=connected reason=auth since=1h0m0s to=blocked")
			w.Stopping("v1", nil)
			w.link("blocked", engine.Blocked, engine.Draining, standby)
			w.link("b", connected, engine.Draining, engine.Disabled)
			w.expect("a stop", began, "node : event=stopping version=v1")
		})
	})
}

func TestHeraldTargets(t *testing.T) {
	change := func(w *town, from, to delivery.CircuitState) {
		w.Target(delivery.TargetChange{Target: "app", From: from, To: to, Reason: "refused", NextStep: "start it"})
	}
	t.Run("one that is down for two minutes is told to the others, and to it when it is back", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			for range 5 {
				change(w, delivery.Closed, delivery.Open)
				time.Sleep(time.Minute)
				change(w, delivery.Open, delivery.Closed)
			}
			w.expect("flaps", began)
			change(w, delivery.Closed, delivery.Open)
			time.Sleep(troubleAfter)
			w.expect("down", began, "target : from=ok reason=refused since=5m0s target=app to=down (not to app)")
			time.Sleep(time.Hour)
			change(w, delivery.Open, delivery.Closed)
			w.expect("back", began, "target : down_since=5m0s from=down since=1h7m0s target=app to=ok")
		})
	})

	t.Run("one that wants nothing more is told at once, though it was told as down", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			change(w, delivery.Closed, delivery.Open)
			time.Sleep(troubleAfter)
			w.expect("down", began, "target : from=ok reason=refused since=0s target=app to=down (not to app)")
			change(w, delivery.Open, delivery.Disabled)
			w.expect("disabled", began, "target : from=down reason=refused since=0s target=app to=disabled (not to app)")
		})
	})

	t.Run("dead letters are told once a minute for each target, counted", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			for i := range 5 {
				for _, target := range []string{"app", "ops"} {
					w.Died(delivery.DeadLetter{Target: target, Delivery: fmt.Sprint("msg_", i), Event: fmt.Sprint("evt_", i), Installation: "acme", Attempts: 3, Reason: "answered 400", At: began})
				}
			}
			w.expect("at once", began, "dead_letter acme: attempts=3 count=1 delivery=msg_0 event=evt_0 reason=answered 400 target=app",
				"dead_letter acme: attempts=3 count=1 delivery=msg_0 event=evt_0 reason=answered 400 target=ops")
			time.Sleep(repeatEvery)
			w.expect("after a minute", began, "dead_letter acme: attempts=3 count=4 delivery=msg_4 event=evt_4 reason=answered 400 target=app",
				"dead_letter acme: attempts=3 count=4 delivery=msg_4 event=evt_4 reason=answered 400 target=ops")
			time.Sleep(time.Hour)
			w.expect("afterwards", began)
		})
	})
}

func TestHeraldOfTheNode(t *testing.T) {
	t.Run("what gave way is told at once, then once a minute, counted", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.GaveWay(6)
			w.expect("at once", began, "backlog : count=6 reason="+backlog.Why)
			w.GaveWay(200)
			w.GaveWay(250)
			time.Sleep(repeatEvery)
			w.expect("after a minute", began, "backlog : count=450 reason="+backlog.Why)
			time.Sleep(time.Hour)
			w.expect("afterwards", began)
		})
	})

	t.Run("gaps are told by installation and code, counted", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.Notice("a", "session_lost", "forgotten")
			w.Notice("a", "event_too_large", "1 MB")
			w.Notice("a", "event_too_large", "2 MB")
			w.expect("at once", began, "gap a: code=session_lost count=1", "gap a: code=event_too_large count=1")
			time.Sleep(repeatEvery)
			w.expect("after a minute", began, "gap a: code=event_too_large count=1")
		})
	})

	t.Run("a store that takes nothing is told at once, and that it takes again", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.Store(fault.Errorf(fault.Full, "no space left"))
			w.expect("ill", began, "store : reason=full since=0s to=takes_nothing")
			time.Sleep(time.Minute)
			w.Store(nil)
			w.expect("well", began, "store : down_since=0s since=1m0s to=takes")
		})
	})

	t.Run("a start is told, as an upgrade where another version ran before", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.Started("v2", "")
			w.Started("v2", "v2")
			w.Started("v2", "v1")
			w.Stopping("v2", errors.New("lock lost"))
			w.expect("all", began, "node : event=started version=v2", "node : event=started version=v2",
				"node : event=upgraded previous_version=v1 version=v2", "node : event=stopping reason=lock lost version=v2")
		})
	})

	t.Run("a trouble of the node's own is told when it lasts, and its end", func(t *testing.T) {
		inTown(t, func(w *town) {
			began := time.Now()
			w.Status("task sweeper", "failing", "disk", "")
			w.Status("clock", "held", "it shows 1970", "")
			time.Sleep(time.Minute)
			w.Status("task sweeper", "ok", "", "")
			time.Sleep(time.Hour)
			w.Status("clock", "ok", "", "")
			w.expect("all", began, "node : event=status reason=it shows 1970 since=0s state=held what=clock",
				"node : down_since=0s event=status state=ok what=clock")
		})
	})
}

func TestHeraldSentences(t *testing.T) {
	t0 := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	began, over := instant{t0}, instant{t0.Add(5 * time.Minute)}
	for want, n := range map[string]news{
		"installation acme is blocked (token revoked): replace it": linkNews{To: "blocked", Reason: "auth", Detail: "token revoked", NextStep: "replace it"},
		"installation acme is backoff (disconnected)":              linkNews{To: "backoff", Reason: "disconnected"},
		"installation acme is connected again, after 5m":           linkNews{To: "connected", Since: over, DownSince: began},
		"installation acme tells of session lost (forgotten)":      gapNews{Code: "session_lost", Detail: "forgotten", Count: 1},
		"installation acme tells of event too large, 3 times":      gapNews{Code: "event_too_large", Count: 3},
		"target app is down (refused): start it":                   targetNews{Target: "app", To: "down", Reason: "refused", NextStep: "start it"},
		"target app is ok again, after 5m":                         targetNews{Target: "app", To: "ok", Since: over, DownSince: began},
		"a delivery to app was given up (answered 400): look":      deadNews{Target: "app", Count: 1, Reason: "answered 400", NextStep: "look"},
		"4 deliveries to app were given up (answered 400)":         deadNews{Target: "app", Count: 4, Reason: "answered 400"},
		"the store takes nothing (no space): free some":            storeNews{To: "takes_nothing", Detail: "no space", NextStep: "free some"},
		"the store takes everything again, after 5m":               storeNews{To: "takes", Since: over, DownSince: began},
		"leasehold v2 has started":                                 nodeNews{Event: "started", Version: "v2"},
		"leasehold v2 has started, in the place of v1":             nodeNews{Event: "upgraded", Version: "v2", Previous: "v1"},
		"leasehold v2 stops (lock lost)":                           nodeNews{Event: "stopping", Version: "v2", Reason: "lock lost"},
		"clock is held (it shows 1970): set it":                    nodeNews{Event: "status", What: "clock", State: "held", Reason: "it shows 1970", NextStep: "set it"},
		"task sweeper is ok":                                       nodeNews{Event: "status", What: "task sweeper", State: "ok"},
	} {
		if got := n.sentence("acme"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	t.Run("it is announced beside the facts, without a secret", func(t *testing.T) {
		inTown(t, func(w *town) {
			w.link("a", connected, engine.Blocked)
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.cries) != 1 || !strings.HasPrefix(w.cries[0].Text, "installation a is blocked (token [redacted] is revoked): replace its credential") {
				t.Errorf("got %+v, want a sentence without the secret", w.cries)
			}
		})
	})
}
