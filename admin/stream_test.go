package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/loop"
)

// pulling are a real dispatcher's targets.
type pulling struct {
	*lives
	d *delivery.Dispatcher
}

func (p pulling) Pull(ctx context.Context, name string, most int) ([]delivery.Leased, error) {
	return p.d.Pull(ctx, name, most)
}

func (p pulling) Stream(name string, o delivery.StreamOptions) (*delivery.Stream, error) {
	return p.d.Stream(name, o)
}

func (p pulling) Acknowledge(name string, leases []string) ([]string, error) {
	return p.d.Acknowledge(name, leases)
}
func (p pulling) Release(name string, all []delivery.Leased) { p.d.Release(name, all) }

// dispatch delivers to a target that is pulled from, until the test ends. hear accepts
// events for it.
func dispatch(t *testing.T) (w *world, hear func(n int)) {
	t.Helper()
	w = newWorld(t)
	d, err := delivery.New(w.store, []delivery.Target{{Name: "app", Kind: "pull", Order: delivery.Unordered}}, delivery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	w.put("acme")
	w.hold()
	d.Hold(w.term)
	w.options.Live = pulling{&lives{}, d}
	return w, func(n int) {
		w.accept(n, "app")
		d.Wake("acme")
	}
}

// source is what an EventSource is, without the coming back by itself.
type source struct {
	t      *testing.T
	answer *http.Response
	in     *bufio.Reader
	last   string // the id that it comes back with
	retry  string
}

// listen opens a stream, after the id that came last.
func listen(t *testing.T, client *http.Client, url, last string) *source {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %s of type %s, want a stream", answer.Status, answer.Header.Get("Content-Type"))
	}
	return &source{t: t, answer: answer, in: bufio.NewReader(answer.Body), last: last}
}

// next is the next message; false: the stream has ended.
func (s *source) next() (p admin.Pulled, ok bool) {
	s.t.Helper()
	var data string
	for {
		line, err := s.in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return p, false
		}
		if err != nil {
			s.t.Fatal(err)
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
		case name == "id":
			s.last = value
		case name == "retry":
			s.retry = value
		case name == "data":
			data += value
		case line == "\n" && data != "":
			if err := json.Unmarshal([]byte(data), &p); err != nil {
				s.t.Fatalf("got %q: %v", data, err)
			}
			return p, true
		}
	}
}

// take is the next n messages, by webhook id.
func (s *source) take(n int) map[string]admin.Pulled {
	s.t.Helper()
	got := map[string]admin.Pulled{}
	for range n {
		p, ok := s.next()
		if !ok {
			s.t.Fatalf("got the stream's end after %d messages, want %d", len(got), n)
		}
		got[p.WebhookID] = p
	}
	return got
}

// delivered waits until n deliveries are.
func (w *world) delivered(n int) {
	w.t.Helper()
	for limit := time.Now().Add(time.Minute); ; {
		all, err := w.store.Deliveries(w.t.Context(), admin.DeliveryQuery{State: "delivered", Limit: 100})
		if err != nil {
			w.t.Fatal(err)
		}
		switch {
		case len(all) == n:
			return
		case time.Now().After(limit):
			w.t.Fatalf("got %d delivered after a minute, want %d", len(all), n)
		}
		_ = loop.Sleep(w.t.Context(), 5*time.Millisecond)
	}
}

func TestPullStream(t *testing.T) {
	const path = "/v1/targets/app/stream"
	serve := func(t *testing.T) (w *world, srv *httptest.Server, hear func(n int)) {
		t.Helper()
		w, hear = dispatch(t)
		srv = httptest.NewServer(admin.New(w.options))
		t.Cleanup(srv.Close)
		return w, srv, hear
	}

	t.Run("a message is what a pull has, under its lease, and is acknowledged by a post", func(t *testing.T) {
		w, srv, hear := serve(t)
		s := listen(t, srv.Client(), srv.URL+path+"?max=2", "")
		hear(3)
		first, ok := s.next()
		if !ok || first.Lease != s.last || s.retry != "1000" || first.Attempt != 1 || first.Until.IsZero() || !strings.HasPrefix(first.WebhookID, "msg_") {
			t.Errorf("got %+v, %v, under the id %s, retry %s, want a delivery under its lease", first, ok, s.last, s.retry)
		}
		if !strings.Contains(string(first.Event), `"type":"message"`) || !strings.Contains(string(first.Event), secretValue) {
			t.Errorf("got %s, want the event as a webhook gets it", first.Event)
		}
		second, _ := s.next()
		w.want(w.do(http.MethodPost, "/v1/targets/app/ack", `{"leases":["`+first.Lease+`","`+second.Lease+`"]}`), http.StatusOK, `"settled":2`)
		third, _ := s.next()
		if slices.Contains([]string{first.WebhookID, second.WebhookID}, third.WebhookID) {
			t.Errorf("got %s again, want another", third.WebhookID)
		}
		w.delivered(2)
	})

	t.Run("who comes back with an id gets what never arrived, under the same webhook id", func(t *testing.T) {
		_, srv, hear := serve(t)
		hear(3)
		s := listen(t, srv.Client(), srv.URL+path+"?max=3", "")
		all := s.take(3)
		back := listen(t, srv.Client(), srv.URL+path+"?max=3", s.last[:strings.LastIndex(s.last, "-")]+"-1")
		again := back.take(2)
		for id, p := range again {
			if was, known := all[id]; !known || was.Lease == p.Lease || p.Attempt != 1 {
				t.Errorf("got %s on lease %s, attempt %d, want one of %v on a lease of its own", id, p.Lease, p.Attempt, all)
			}
		}
		if _, ok := s.next(); ok {
			t.Error("got another message on the first stream, want its end")
		}
	})

	t.Run("with ack=resume each coming back acknowledges what arrived, and nothing is posted", func(t *testing.T) {
		w, srv, hear := serve(t)
		hear(5)
		seen, last := map[string]int{}, ""
		for len(seen) < 5 {
			s := listen(t, srv.Client(), srv.URL+path+"?max=2&ack=resume", last)
			for n := 0; ; n++ {
				p, ok := s.next()
				if !ok {
					break
				}
				if seen[p.WebhookID]++; n >= 2 {
					t.Errorf("got %d messages on one stream, want two at most", n+1)
				}
			}
			if last = s.last; s.retry != "100" {
				t.Errorf("got retry %q, want to be asked back at once", s.retry)
			}
		}
		listen(t, srv.Client(), srv.URL+path+"?ack=resume", last)
		w.delivered(5)
		for id, n := range seen {
			if n != 1 {
				t.Errorf("got %s %d times, want once", id, n)
			}
		}
	})

	t.Run("what it cannot be asked is said, and so is what there is not", func(t *testing.T) {
		w, _, _ := serve(t)
		w.want(w.do(http.MethodGet, path+"?max=0&ack=never", ""), http.StatusUnprocessableEntity, "max: must be", "ack: must be one of resume")
		w.want(w.do(http.MethodGet, "/v1/targets/nobody/stream", ""), http.StatusNotFound, "there is no target nobody")
	})

	t.Run("the end of the server is a stream's orderly end", func(t *testing.T) {
		w, hear := dispatch(t)
		socket := filepath.Join(t.TempDir(), "s")
		l, err := admin.Listen(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan error, 1)
		go func() { done <- admin.Serve(ctx, l, admin.New(w.options), slog.New(slog.DiscardHandler)) }()
		s := listen(t, &http.Client{Transport: admin.Socket(socket)}, "http://leasehold"+path, "")
		hear(1)
		s.take(1)
		stop()
		if _, ok := s.next(); ok {
			t.Error("got a message, want the stream's end")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	t.Run("an idle stream says that it lives every 15 seconds, and ends with its reader", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, err := delivery.New(nil, []delivery.Target{{Name: "app", Kind: "pull"}}, delivery.Options{})
			if err != nil {
				t.Fatal(err)
			}
			api := admin.New(admin.Options{Live: pulling{&lives{}, d}})
			client := &http.Client{Transport: admin.InProcess(api)}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://leasehold"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			in, began := bufio.NewReader(answer.Body), time.Now()
			const want = ": leasehold\nretry: 1000\n\n:\n\n:\n\n"
			b := make([]byte, len(want))
			if _, err := io.ReadFull(in, b); err != nil || string(b) != want || time.Since(began) != 30*time.Second {
				t.Errorf("got %q, %v after %v, want two comments in 30 s", b, err, time.Since(began))
			}
			if err := answer.Body.Close(); err != nil { // it waits for the handler
				t.Error(err)
			}
		})
	})
}
