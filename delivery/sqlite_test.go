package delivery_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/store/sqlite"
)

// box is a data folder with one installation.
type box struct {
	*sqlite.Store
	term channel.Term
}

// open opens the database as a new process does, and takes the lease.
func open(t testing.TB, path string) *box {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	session := fmt.Sprint("session-", time.Now().UnixNano())
	if _, err := s.OpenSession(t.Context(), engine.SessionRequest{ID: session, Instance: "box", Host: "here", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, _ = s.PutInstallation(t.Context(), admin.Installation{ID: "acme", Type: "heartbeat", Enabled: true, Source: "api"}, 0)
	grants, err := s.Claim(t.Context(), session, []string{"acme"})
	if err != nil || len(grants) != 1 {
		t.Fatalf("got %v, %v, want a grant", grants, err)
	}
	term := channel.Term{Installation: "acme", Owner: session, Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(t.Context(), term, "me"); err != nil {
		t.Fatal(err)
	}
	return &box{s, term}
}

// say accepts n events in so many conversations.
func (b *box) say(t testing.TB, n, conversations int) {
	t.Helper()
	const batch = 500
	for from := 0; from < n; from += batch {
		var heard []engine.Heard
		for i := from; i < min(from+batch, n); i++ {
			e := channel.Event{ID: fmt.Sprint(i), Type: "message", Conversation: channel.Ref{ID: fmt.Sprint("C", i%conversations)}, Text: strings.Repeat("word ", 40)}
			body := fmt.Appendf(nil, `{"id":%q,"type":"message","conversation":{"id":%q},"text":%q,"raw":{"text":%q}}`, e.ID, e.Conversation.ID, e.Text, strings.Repeat("word ", 80))
			heard = append(heard, engine.Heard{Event: e, Body: body, Targets: []string{"app"}})
		}
		if _, err := b.Accept(t.Context(), engine.AcceptRequest{Term: b.term, Identity: "me", Events: heard}); err != nil {
			t.Fatal(err)
		}
	}
}

// deliver runs a dispatcher over the box until the returned function is called.
func (b *box) deliver(t testing.TB, url string, concurrency int) (stop func()) {
	t.Helper()
	d, err := delivery.New(b.Store, []delivery.Target{{Name: "app", Kind: "http", URL: url, Concurrency: concurrency}}, delivery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	d.Hold(b.term)
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// until waits for a condition, for a minute at most.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func TestOverSQLite(t *testing.T) {
	t.Run("1,000 events that wait for a target which answers 500 survive a restart and arrive, each under its id", func(t *testing.T) {
		var mu sync.Mutex
		var broken atomic.Bool
		tried, taken := map[string]bool{}, map[string]int{}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			defer mu.Unlock()
			id := r.Header.Get("webhook-id")
			if broken.Load() {
				tried[id] = true
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			taken[id]++
		}))
		defer srv.Close()
		broken.Store(true)

		path := filepath.Join(t.TempDir(), "leasehold.db")
		first := open(t, path)
		first.say(t, 1000, 50)
		stop := first.deliver(t, srv.URL, 8)
		until(t, "attempts", func() bool { mu.Lock(); defer mu.Unlock(); return len(tried) >= 5 })
		until(t, "attempts to be given back", func() bool {
			all, err := first.Deliveries(t.Context(), admin.DeliveryQuery{Limit: 500, Before: 501})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range all {
				if d.Attempts != 0 {
					return false
				}
			}
			return true
		})
		stop()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}

		broken.Store(false)
		second := open(t, path)
		defer func() { _ = second.Close() }()
		defer second.deliver(t, srv.URL, 8)()
		until(t, "all of them", func() bool { mu.Lock(); defer mu.Unlock(); return len(taken) == 1000 })
		until(t, "their marks", func() bool {
			totals, err := second.Totals(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return totals.Deliveries["pending"] == 0
		})
		mu.Lock()
		defer mu.Unlock()
		for id := range tried {
			if taken[id] == 0 {
				t.Errorf("%s was tried before the restart and not taken after it, want the same id", id)
			}
		}
		for id, n := range taken {
			if n != 1 {
				t.Errorf("got %s %d times, want once", id, n)
			}
		}
	})
}

// BenchmarkDispatchSQLite is BenchmarkDispatch with every outcome on the disk.
func BenchmarkDispatchSQLite(b *testing.B) {
	var got atomic.Int64
	var body atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got.Add(1) == 1 {
			sent, _ := io.ReadAll(r.Body)
			body.Store(sent)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer srv.Close()
	for _, lanes := range []int{1, 64} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			const n = 10_000
			var r delivery.Rates
			for b.Loop() {
				s := open(b, filepath.Join(b.TempDir(), "leasehold.db"))
				s.say(b, n, lanes)
				got.Store(0)
				began := time.Now()
				stop := s.deliver(b, srv.URL, lanes)
				until(b, "all of them", func() bool { return got.Load() >= n })
				took := time.Since(began)
				stop()
				_ = s.Close()
				plain := delivery.Post(b, srv.URL, body.Load().([]byte), lanes, n)
				r.Add(n, took, plain)
			}
			r.Report(b)
		})
	}
}
