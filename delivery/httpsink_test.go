package delivery

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/channel"
)

// sinkFor makes the sink of a target, closed with the test.
func sinkFor(t *testing.T, target Target) *httpSink {
	t.Helper()
	target.Name, target.Kind = "app", "http"
	if err := target.check(); err != nil {
		t.Fatal(err)
	}
	s, err := newHTTPSink(target.withDefaults(), nil, nil, "leasehold/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func attempt(t *testing.T, s *httpSink) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return s.Deliver(ctx, Delivery{ID: "msg_1", EventID: "evt_1", Type: "message", Attempt: 3, Envelope: []byte(`{"type":"message"}`)})
}

func TestHTTPSink(t *testing.T) {
	t.Run("it posts the envelope with its headers", func(t *testing.T) {
		var got *http.Request
		var body []byte
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = r
			body, _ = io.ReadAll(r.Body)
		}))
		defer srv.Close()
		s := sinkFor(t, Target{URL: srv.URL + "/events?app=1", Headers: map[string]channel.Text{"authorization": channel.NewText("Bearer s3cret-value")}})
		r := s.Deliver(t.Context(), Delivery{ID: "msg_1", Attempt: 2, Replay: true, Envelope: []byte(`{"a":1}`)})
		same(t, "outcome", r.Outcome, Taken)
		same(t, "request", got.Method+" "+got.RequestURI, "POST /events?app=1")
		same(t, "body", string(body), `{"a":1}`)
		for name, want := range map[string]string{
			"content-type": "application/json", "user-agent": "leasehold/test", "webhook-id": "msg_1", "leasehold-attempt": "2",
			"leasehold-replay": "true", "authorization": "Bearer s3cret-value", "idempotency-key": "", "accept-encoding": "",
		} {
			same(t, name, got.Header.Get(name), want)
		}
		var sent int64
		if _, err := fmt.Sscan(got.Header.Get("webhook-timestamp"), &sent); err != nil || time.Since(time.Unix(sent, 0)).Abs() > time.Minute {
			t.Errorf("got webhook-timestamp %q, want now in seconds", got.Header.Get("webhook-timestamp"))
		}
		s.Deliver(t.Context(), Delivery{ID: "msg_1", Attempt: 1})
		if _, ok := got.Header["Leasehold-Replay"]; ok {
			t.Error("got leasehold-replay on a first delivery, want none")
		}
	})

	t.Run("the status decides", func(t *testing.T) {
		for status, want := range map[int]Outcome{
			200: Taken, 202: Taken, 204: Taken, 301: Broken, 302: Broken, 400: Refused, 401: Refused, 404: Refused, 408: Refused, 410: Gone,
			413: Refused, 422: Refused, 425: Refused, 429: Down, 500: Broken, 501: Broken, 502: Down, 503: Down, 504: Down, 507: Broken,
		} {
			var hops atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				hops.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}))
			s := sinkFor(t, Target{URL: srv.URL})
			r := attempt(t, s)
			if r.Outcome != want {
				t.Errorf("got %v for %d, want %v", r.Outcome, status, want)
			}
			same(t, "requests", hops.Load(), 1)
			if want != Taken && !strings.HasPrefix(r.Reason, fmt.Sprintf("answered %d: ", status)) {
				t.Errorf("got reason %q, want the status", r.Reason)
			}
			srv.Close()
		}
	})

	t.Run("a reason quotes the answer on one line, within a limit", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte("no such\r\n\tcustomer \x00\xff " + strings.Repeat("é", 40_000)))
		}))
		defer srv.Close()
		r := attempt(t, sinkFor(t, Target{URL: srv.URL}))
		if !strings.HasPrefix(r.Reason, "answered 422: no such customer \uFFFD éé") || len(r.Reason) > reasonLimit+40 || strings.ContainsAny(r.Reason, "\r\n\t\x00") {
			t.Errorf("got %q (%d bytes), want one short line", r.Reason, len(r.Reason))
		}
	})

	t.Run("an endless answer is read to the limit only", func(t *testing.T) {
		var wrote atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			chunk := bytes.Repeat([]byte("x"), 32<<10)
			for r.Context().Err() == nil {
				n, err := w.Write(chunk)
				if err != nil {
					return
				}
				wrote.Add(int64(n))
			}
		}))
		defer srv.Close()
		same(t, "outcome", attempt(t, sinkFor(t, Target{URL: srv.URL})).Outcome, Broken)
		if n := wrote.Load(); n > 64<<20 {
			t.Errorf("got %d bytes read, want about %d", n, bodyLimit)
		}
	})

	t.Run("no reason holds a header, a password or a query, whatever the target echoes", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			user, password, _ := r.BasicAuth()
			_, _ = fmt.Fprintf(w, "%s %s %s %s", user, password, r.URL.RawQuery, r.Header.Get("X-Key"))
		}))
		address := strings.Replace(srv.URL, "http://", "http://me:pa55word@", 1) + "/?token=t0k3n-of-mine"
		s := sinkFor(t, Target{URL: address, Headers: map[string]channel.Text{"X-Key": channel.NewText("k3y-of-mine")}})
		reasons := []string{attempt(t, s).Reason}
		srv.Close()
		reasons = append(reasons, attempt(t, s).Reason) // refused: the library's error has the address
		for _, r := range reasons {
			for _, secret := range []string{"pa55word", "t0k3n-of-mine", "k3y-of-mine", "token="} {
				if r == "" || strings.Contains(r, secret) {
					t.Errorf("got %q, want a reason without %q", r, secret)
				}
			}
		}
	})

	t.Run("what cannot be reached is down", func(t *testing.T) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		free := l.Addr().String()
		_ = l.Close()
		tls := httptest.NewUnstartedServer(http.NotFoundHandler())
		tls.Config.ErrorLog = log.New(io.Discard, "", 0)
		tls.StartTLS()
		defer tls.Close()
		for what, address := range map[string]string{
			"refused": "http://" + free, "an unknown name": "http://nowhere.invalid/", "an untrusted certificate": tls.URL,
			"not TLS": strings.Replace(httptestPlain(t), "http:", "https:", 1),
		} {
			r := attempt(t, sinkFor(t, Target{URL: address}))
			if r.Outcome != Down || r.Reason == "" {
				t.Errorf("%s: got %v (%s), want down", what, r.Outcome, r.Reason)
			}
		}
	})

	t.Run("ca_file is trusted beside the system's authorities", func(t *testing.T) {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer srv.Close()
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		same(t, "outcome", attempt(t, sinkFor(t, Target{URL: srv.URL, CAFile: file})).Outcome, Taken)
	})

	t.Run("a connection that breaks before the answer breaks the event", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}))
		defer srv.Close()
		r := attempt(t, sinkFor(t, Target{URL: srv.URL}))
		same(t, "outcome", r.Outcome, Broken)
		if !strings.HasPrefix(r.Reason, "the connection broke before an answer: ") {
			t.Errorf("got reason %q, want that it broke", r.Reason)
		}
	})

	t.Run("a body that breaks off changes nothing", func(t *testing.T) {
		for status, want := range map[string]Outcome{"200 OK": Taken, "500 Oops": Broken, "503 Later": Down} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, buf, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				_, _ = buf.WriteString("HTTP/1.1 " + status + "\r\nContent-Length: 100\r\n\r\nhalf")
				_ = buf.Flush()
				_ = conn.Close()
			}))
			if r := attempt(t, sinkFor(t, Target{URL: srv.URL})); r.Outcome != want {
				t.Errorf("got %v for %s, want %v", r.Outcome, status, want)
			}
			srv.Close()
		}
	})

	t.Run("kept connections that the target has closed cost no attempt", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer srv.Close()
		s := sinkFor(t, Target{URL: srv.URL})
		for range 50 {
			if r := attempt(t, s); r.Outcome != Taken {
				t.Fatalf("got %v (%s), want every call taken", r.Outcome, r.Reason)
			}
			srv.CloseClientConnections() // under a connection that is kept
		}
	})

	t.Run("no answer in time is slow, a cancelled call is aborted", func(t *testing.T) {
		done := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-done:
			}
		}))
		defer srv.Close()
		defer close(done)
		s := sinkFor(t, Target{URL: srv.URL})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		same(t, "outcome after the deadline", s.Deliver(ctx, Delivery{}).Outcome, Slow)
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		same(t, "outcome after the cancel", s.Deliver(ctx, Delivery{}).Outcome, Aborted)
	})

	t.Run("connections are kept for as many calls as run at the same time", func(t *testing.T) {
		var opened atomic.Int64
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		srv.Start()
		defer srv.Close()
		s := sinkFor(t, Target{URL: srv.URL, Concurrency: 8})
		for range 30 {
			results := make(chan Result, 8)
			for range 8 {
				go func() { results <- attempt(t, s) }()
			}
			for range 8 {
				same(t, "outcome", (<-results).Outcome, Taken)
			}
		}
		if n := opened.Load(); n > 16 {
			t.Errorf("got %d connections for 240 calls, 8 at a time; want them kept", n)
		}
	})
}

// httptestPlain is the address of a server without TLS.
func httptestPlain(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "soon": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "86400": time.Hour, "99999999999999999999": time.Hour,
		"Mon, 30 Nov 2026 09:00:30 GMT": 30 * time.Second, "Mon, 30 Nov 2026 08:00:00 GMT": 0, "Tue, 30 Nov 2027 09:00:00 GMT": time.Hour, "1.5": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("got %s for %q, want %s", got, header, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "-1", "Mon, 30 Nov 2026 09:00:30 GMT", "99999999999999999999", "1e9", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := retryAfter(header, time.Unix(1764493964, 0)); got < 0 || got > retryAfterMax {
			t.Errorf("got %s for %q, want between 0 and an hour", got, header)
		}
	})
}

func FuzzReason(f *testing.F) {
	f.Add(500, []byte("oops"))
	f.Add(404, []byte("\xff\x00\n"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		s := sinkFor(t, Target{URL: "http://localhost/"})
		got := s.reason(status, body)
		if strings.ContainsAny(got, "\r\n\x00") || len(got) > reasonLimit+64 || strings.ToValidUTF8(got, "") != got {
			t.Errorf("got %q, want one short line of text", got)
		}
	})
}
