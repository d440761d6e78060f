package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/loop"
	"leasehold/internal/redact"
)

// watchdog is a service that is pinged.
type watchdog struct {
	*httptest.Server
	mu     sync.Mutex // guards what follows
	calls  []string
	answer int
}

func newWatchdog(t *testing.T) *watchdog {
	t.Helper()
	w := &watchdog{answer: http.StatusOK}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		rw.WriteHeader(w.answer)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *watchdog) answers(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = status
}

func (w *watchdog) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.calls, want) {
		t.Errorf("%s: got %q, want %q", what, w.calls, want)
	}
	w.calls = nil
}

// condition is what a pinger tells of.
type condition struct {
	mu      sync.Mutex // guards what follows, where a task looks at it
	trouble []admin.Trouble
	err     error
	away    bool // no network
	calls   []string
}

// set changes it.
func (b *condition) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *condition) overview(context.Context) (admin.Overview, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return admin.Overview{Trouble: b.trouble}, b.err
}

func (b *condition) pinger(url config.Value, secrets map[string]string) (*pinger, *redact.Redactor) {
	c, r := config.Default(), redact.New()
	c.Health.PingURL = url
	resolve := func(_, name string) (string, error) {
		if v, ok := secrets[name]; ok {
			return v, nil
		}
		return "", errors.New("no such file")
	}
	return newPinger(func() *config.Config { return c }, resolve, b.overview, r), r
}

func TestPing(t *testing.T) {
	look := func(t *testing.T, p *pinger) {
		t.Helper()
		if done, err := p.run(t.Context()); err != nil || done != "" {
			t.Errorf("got %q, %v, want a ping without words", done, err)
		}
	}
	acme := admin.Trouble{What: "installation acme", State: "blocked", Reason: "auth", NextStep: "replace its credential"}

	t.Run("well, unwell at one look, unwell, well", func(t *testing.T) {
		w, b := newWatchdog(t), &condition{}
		p, _ := b.pinger(config.Value{Literal: w.URL + "/ping/id?from=box"}, nil)
		look(t, p)
		w.expect(t, "well", "GET /ping/id?from=box")
		b.trouble = []admin.Trouble{acme, {What: "clock", State: "held"}}
		look(t, p)
		w.expect(t, "unwell at one look")
		look(t, p)
		look(t, p)
		fail := "POST /ping/id/fail?from=box installation acme is blocked (auth): replace its credential\nclock is held"
		w.expect(t, "unwell", fail, fail)
		b.trouble = nil
		look(t, p)
		b.trouble = []admin.Trouble{acme}
		look(t, p)
		b.trouble = nil
		look(t, p)
		w.expect(t, "well again, but for one look", "GET /ping/id?from=box", "GET /ping/id?from=box")
	})

	t.Run("a box that cannot say how it is is not well", func(t *testing.T) {
		w, b := newWatchdog(t), &condition{err: errors.New("disk on fire")}
		p, _ := b.pinger(config.Value{Literal: w.URL}, nil)
		look(t, p)
		look(t, p)
		w.expect(t, "calls", "POST /fail the box cannot say how it is: disk on fire")
	})

	t.Run("that the last ping failed is no reason for this one to say so", func(t *testing.T) {
		w, b := newWatchdog(t), &condition{trouble: []admin.Trouble{{What: "task health-ping", State: "failing"}}}
		p, _ := b.pinger(config.Value{Literal: w.URL + "/x"}, nil)
		look(t, p)
		w.expect(t, "calls", "GET /x")
	})

	t.Run("without an address nobody is asked and nobody is called", func(t *testing.T) {
		b := &condition{err: errors.New("asked")}
		p, _ := b.pinger(config.Value{}, nil)
		look(t, p)
		look(t, p)
	})

	t.Run("a secret address is in no error, and is taken out of what is said", func(t *testing.T) {
		w, b := newWatchdog(t), &condition{}
		secret := w.URL + "/ping/7f3c-secret"
		p, r := b.pinger(config.Value{Reference: config.Reference{Kind: "file", Name: "ping"}}, map[string]string{"ping": secret + "\n"})
		look(t, p)
		w.expect(t, "calls", "GET /ping/7f3c-secret")
		if got := r.String("at " + secret); got != "at [redacted]" {
			t.Errorf("got %q, want the address taken out", got)
		}
		w.answers(http.StatusNotFound)
		_, refused := p.run(t.Context())
		w.answers(http.StatusMovedPermanently)
		_, moved := p.run(t.Context())
		w.Close()
		_, gone := p.run(t.Context())
		for what, err := range map[string]error{"answered 404; correct health.ping_url": refused, "answered 301": moved, "refused": gone} {
			if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "7f3c") {
				t.Errorf("got %v, want it to say %s without the address", err, what)
			}
		}
	})

	t.Run("an address that is none, or is not there, is told by its key", func(t *testing.T) {
		b := &condition{}
		for want, v := range map[string]config.Value{
			"health.ping_url: no such file":     {Reference: config.Reference{Kind: "file", Name: "missing"}},
			"health.ping_url is no address":     {Literal: "not an address"},
			"health.ping_url is no address; wr": {Literal: "http://[::1/secret"},
		} {
			p, _ := b.pinger(v, nil)
			if _, err := p.run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s…", err, want)
			}
		}
	})

	t.Run("a stop sends nothing and is no failure of the box", func(t *testing.T) {
		w := newWatchdog(t)
		ctx, cancel := context.WithCancel(t.Context())
		b := &condition{}
		p, _ := b.pinger(config.Value{Literal: w.URL}, nil)
		cancel()
		b.err = ctx.Err()
		if _, err := p.run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the cancellation", err)
		}
		w.expect(t, "calls")
	})
}

// roundTripper is a service that is pinged without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPingTask runs the task as the program does, for half an hour.
func TestPingTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, b := time.Now(), &condition{}
		p, _ := b.pinger(config.Value{Literal: "https://hc.example.org/id"}, nil)
		p.client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.away {
				return nil, errors.New("no route to host")
			}
			b.calls = append(b.calls, fmt.Sprintf("%.0f %s", time.Since(began).Minutes(), r.URL.Path))
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		var logged strings.Builder
		notes := &book{}
		c := &chore{name: pingTask, store: notes, do: p.run}
		tasks, err := loop.NewGroup(loop.Standard(), slog.New(slog.NewTextHandler(&logged, nil)), loop.Task{Name: c.name, Every: pingEvery, Cycle: c.cycle})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tasks.Run(ctx) }()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		expect := func(what string, want ...string) {
			t.Helper()
			b.mu.Lock()
			defer b.mu.Unlock()
			if !slices.Equal(b.calls, want) {
				t.Errorf("%s: got %q, want %q", what, b.calls, want)
			}
			b.calls = nil
		}

		pass(150 * time.Second)
		expect("well", "0 /id", "1 /id", "2 /id")
		b.set(func() { b.trouble = []admin.Trouble{{What: "installation acme", State: "blocked"}} })
		pass(3 * time.Minute)
		expect("unwell, from the second look on", "4 /id/fail", "5 /id/fail")
		b.set(func() { b.trouble = nil })
		pass(time.Minute)
		expect("well again", "6 /id")
		if len(notes.runs) > 0 || logged.Len() > 0 {
			t.Errorf("got the notes %v and the log %q, want nothing written while pings arrive", notes.runs, logged.String())
		}
		b.set(func() { b.away = true })
		pass(10 * time.Minute)
		status := tasks.Status()[0]
		if status.ConsecutiveFailures == 0 || status.LastError != "ping hc.example.org: no route to host" {
			t.Errorf("got %+v, want a failing task with its reason", status)
		}
		if n := strings.Count(logged.String(), "background task crashed"); n != status.ConsecutiveFailures {
			t.Errorf("got %d log lines, want one for each of %d failures", n, status.ConsecutiveFailures)
		}
		b.set(func() { b.away = false })
		pass(5 * time.Minute)
		b.set(func() {
			if len(b.calls) == 0 || tasks.Status()[0].ConsecutiveFailures > 0 {
				t.Errorf("got the calls %q, want a ping within five minutes of the network's return", b.calls)
			}
			b.calls = nil
		})
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v, want a clean end", err)
		}
		expect("a stop")
	})
}
