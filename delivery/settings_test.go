package delivery

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestPrepare(t *testing.T) {
	t.Run("a fault in one of several targets changes nothing and is named", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: &fakeSink{}})
			for name, bad := range map[string]Settings{
				`target "web": url: is missing`:                      {Targets: []Target{{Name: "log", Kind: "log"}, {Name: "web", Kind: "http"}}},
				`target "log": name: there are two of this name`:     {Targets: []Target{{Name: "log", Kind: "log"}, {Name: "log", Kind: "log"}}},
				`delivery.targets: there is no target "web"`:         {Targets: []Target{{Name: "log", Kind: "log"}}, Default: []string{"web"}},
				`target "web": ca_file: read authorities: open /nil`: {Targets: []Target{{Name: "web", Kind: "http", URL: "https://x", CAFile: "/nil"}}},
			} {
				_, err := b.Prepare(bad)
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("got %v, want %s", err, name)
				}
			}
			sameList(t, "targets", names(b.Stats()), []string{"app"})
		})
	})
}

func names(s Stats) (all []string) {
	for _, t := range s.Targets {
		all = append(all, t.Name)
	}
	return all
}

func TestApply(t *testing.T) {
	down := func(context.Context, Delivery) Result { return Result{Outcome: Down, Reason: "refused"} }

	t.Run("a target that is as it was keeps its circuit and its counts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: down}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink}, Target{Name: "log", Kind: "log"})
			term := b.hold("acme")
			b.Accepted(term, box.say("acme", "C1", "app"))
			time.Sleep(10 * time.Minute)
			was := b.Stats().Targets[0]
			added, changed, removed := b.set(Target{Name: "app", Sink: sink, Events: []string{"*"}}, Target{Name: "log", Kind: "log"})
			same(t, "changes", fmt.Sprint(added, changed, removed), "[] [] []")
			same(t, "state", b.Stats().Targets[0], was)
		})
	})

	t.Run("a target that wanted nothing any more gets what waited once it is changed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			gone := &fakeSink{answer: func(context.Context, Delivery) Result { return Result{Outcome: Gone, Reason: "answered 410"} }}
			b := start(t, box, Options{}, Target{Name: "app", Sink: gone})
			term, next := b.hold("acme"), &fakeSink{}
			b.Accepted(term, box.say("acme", "C1", "app"))
			b.Accepted(term, box.say("acme", "C2", "app"))
			time.Sleep(time.Hour)
			same(t, "state", b.Stats().Targets[0].State, Disabled)
			_, changed, _ := b.set(Target{Name: "app", Sink: next})
			sameList(t, "changed", changed, []string{"app"})
			time.Sleep(time.Second)
			same(t, "taken", len(next.got()), 2)
			got := b.Stats().Targets[0]
			same(t, "state", got.State, Closed)
			same(t, "last error", got.LastError, "")
		})
	})

	t.Run("a target that wanted nothing any more is asked again when that is wished, and not before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, gone := newOutbox(), &atomic.Bool{}
			gone.Store(true)
			app := Target{Name: "app", Sink: &fakeSink{answer: func(context.Context, Delivery) Result {
				if gone.Load() {
					return Result{Outcome: Gone, Reason: "answered 410"}
				}
				return Result{Outcome: Taken}
			}}}
			b := start(t, box, Options{}, app)
			b.Accepted(b.hold("acme"), box.say("acme", "C1", "app"))
			time.Sleep(time.Minute)
			gone.Store(false)
			_, changed, _ := b.set(app)
			time.Sleep(time.Minute)
			same(t, "changed, delivered", fmt.Sprint(changed, box.count("app", Delivered)), "[] 0")
			c, err := b.Prepare(Settings{Targets: []Target{app}, Revive: true})
			if err != nil {
				t.Fatal(err)
			}
			_, changed, _ = c.Apply()
			time.Sleep(time.Second)
			same(t, "changed, delivered", fmt.Sprint(changed, box.count("app", Delivered)), "[app] 1")
		})
	})

	t.Run("a call that the change overtook is no attempt when it fails, and a delivery when it does not", func(t *testing.T) {
		for _, outcome := range []Outcome{Taken, Refused, Broken, Down, Gone} {
			synctest.Test(t, func(t *testing.T) {
				box, answered := newOutbox(), make(chan struct{})
				old := &fakeSink{answer: func(context.Context, Delivery) Result { <-answered; return Result{Outcome: outcome, Reason: "old"} }}
				b := start(t, box, Options{}, Target{Name: "app", Sink: old})
				term, next := b.hold("acme"), &fakeSink{}
				seq := box.say("acme", "C1", "app")
				b.Accepted(term, seq)
				synctest.Wait()
				b.set(Target{Name: "app", Sink: next})
				time.Sleep(time.Second)
				same(t, "calls while the first is under way", len(next.tries()), 0)
				close(answered)
				time.Sleep(time.Second)
				want := 1
				if outcome == Taken {
					want = 0
				}
				same(t, fmt.Sprintf("calls after %v", outcome), len(next.tries()), want)
				r := box.row(seq, "app")
				same(t, "state", r.state, Delivered)
				same(t, "attempts", r.Attempts, 1)
				same(t, "circuit", b.Stats().Targets[0].State, Closed)
			})
		}
	})

	t.Run("what waits for a removed target is kept and shown, and delivered when it comes back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, log := newOutbox(), &logbook{}
			b := start(t, box, Options{Log: log.logger()}, Target{Name: "app", Sink: &fakeSink{answer: down}}, Target{Name: "web", Sink: &fakeSink{}})
			term := b.hold("acme")
			for range 3 {
				b.Accepted(term, box.say("acme", "C1", "app", "web"))
			}
			time.Sleep(time.Minute)
			for round := range 2 {
				_, _, removed := b.set(Target{Name: "web", Sink: &fakeSink{}})
				sameList(t, "removed", removed, []string{"app"})
				time.Sleep(time.Second)
				got := b.Stats().Targets[0]
				same(t, "state", fmt.Sprintf("%s %s %d", got.Name, got.State, got.Waiting), "app unknown 3")
				same(t, "warnings", len(log.find("target not configured")), round+1)
				time.Sleep(48 * time.Hour) // beyond its max_age
				same(t, "dead", box.count("app", Dead), 0)
				if round == 0 {
					b.set(Target{Name: "app", Sink: &fakeSink{answer: down}, MaxAge: 1000 * time.Hour}, Target{Name: "web", Sink: &fakeSink{}})
					time.Sleep(time.Minute)
					same(t, "state after it came back", b.Stats().Targets[0].State, Open)
				}
			}
			back := &fakeSink{}
			added, _, _ := b.set(Target{Name: "app", Sink: back, MaxAge: 1000 * time.Hour}, Target{Name: "web", Sink: &fakeSink{}})
			sameList(t, "added", added, []string{"app"})
			time.Sleep(time.Second)
			sameList(t, "taken", back.got(), evt(1, 2, 3))
		})
	})

	t.Run("another order holds from then on, and none of it is out of order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			term := b.hold("acme")
			for i := range 12 {
				b.Accepted(term, box.say("acme", fmt.Sprint("C", i%4), "app"))
			}
			time.Sleep(1500 * time.Millisecond)
			b.set(Target{Name: "app", Sink: sink, Order: PerInstallation})
			same(t, "calls at once before", sink.most(), 4)
			time.Sleep(time.Second)
			sink.mu.Lock()
			sink.max = 0
			sink.mu.Unlock()
			time.Sleep(time.Minute)
			same(t, "calls at once after", sink.most(), 1)
			same(t, "taken", len(sink.got()), 12)
		})
	})

	t.Run("new defaults, labels and a new bound hold from the next event on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			all := []Target{{Name: "app", Sink: sink}, {Name: "log", Kind: "log"}}
			b := start(t, box, Options{Node: Node{Name: "old"}}, all...)
			e := &channel.Event{Type: "message"}
			sameList(t, "targets", b.Targets(channel.Term{}, e), []string{"app", "log"})
			c, err := b.Prepare(Settings{Node: Node{Name: "new"}, Total: 1, Targets: all, Default: []string{"app"}})
			if err != nil {
				t.Fatal(err)
			}
			c.Apply()
			sameList(t, "targets", b.Targets(channel.Term{}, e), []string{"app"})
			b.Accepted(b.hold("acme"), box.say("acme", "C1", "app"))
			time.Sleep(time.Second)
			if got := string(sink.tries()[0].Envelope); !strings.Contains(got, `"node":{"name":"new"}`) {
				t.Errorf("got %s, want the new name in it", got)
			}
		})
	})

	t.Run("after the end nothing is changed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: &fakeSink{}})
			b.end()
			added, changed, removed := b.set(Target{Name: "log", Kind: "log"})
			same(t, "changes", fmt.Sprint(added, changed, removed), "[] [] []")
		})
	})
}

func TestConnectionsOverChange(t *testing.T) {
	t.Run("an unchanged target keeps its connection, a changed header costs a new one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network, p := newNetwork(), &program{}
			p.listen(t, network)
			defer p.close()
			var dials atomic.Int64
			dial := func(ctx context.Context, n, addr string) (net.Conn, error) {
				dials.Add(1)
				return network.Dial(ctx, n, addr)
			}
			secret := make(chan string, 10)
			p.handle = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
				secret <- r.Header.Get("Authorization")
				return false
			}
			app := func(token string) Target {
				return Target{Name: "app", Kind: "http", URL: "http://program/", Headers: map[string]channel.Text{"Authorization": channel.NewText(token)}}
			}
			box := newOutbox()
			b := start(t, box, Options{Dial: dial}, app("one"))
			term := b.hold("acme")
			for i, token := range []string{"one", "one", "two"} {
				_, changed, _ := b.set(app(token))
				same(t, "changed", len(changed), i/2)
				b.Accepted(term, box.say("acme", "C1", "app"))
				time.Sleep(time.Second)
				same(t, "header", <-secret, token)
				same(t, "connections", int(dials.Load()), 1+i/2)
			}
		})
	})

	t.Run("a file of authorities with other content is a change", func(t *testing.T) {
		b, err := New(newOutbox(), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewTLSServer(http.NotFoundHandler())
		defer server.Close()
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		file := filepath.Join(t.TempDir(), "ca.pem")
		web := Target{Name: "web", Kind: "http", URL: "https://program/", CAFile: file}
		var got []string
		for _, remark := range []string{"one\n", "one\n", "two\n"} {
			if err := os.WriteFile(file, append([]byte(remark), authority...), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := b.Prepare(Settings{Targets: []Target{web}})
			if err != nil {
				t.Fatal(err)
			}
			added, changed, _ := c.Apply()
			got = append(got, fmt.Sprint(added, changed))
		}
		sameList(t, "added and changed", got, []string{"[web] []", "[] []", "[] [web]"})
	})
}
