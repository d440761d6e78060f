package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"leasehold/admin"
	"leasehold/config"
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
	trouble []admin.Trouble
	err     error
}

func (b *condition) overview(context.Context) (admin.Overview, error) {
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
