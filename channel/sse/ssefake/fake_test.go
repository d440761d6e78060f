package ssefake_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel/channeltest"
	"leasehold/channel/sse/ssefake"
)

// world is a fake server on a network in memory.
type world struct {
	*testing.T
	fake *ssefake.Server
	net  *channeltest.Net
}

func bubble(t *testing.T, o ssefake.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, ssefake.New(o), channeltest.NewNet()}
		ln, err := w.net.Listen("fake.test:80")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- w.fake.Serve(ln) }()
		f(w)
		w.fake.Close()
		if err := <-served; err != nil {
			t.Errorf("got %v from Serve, want nil after Close", err)
		}
	})
}

// stream is what a client of the plainest kind sees.
type stream struct {
	w      *world
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// ask asks for a stream with headers "Name: value".
func (w *world) ask(path string, headers ...string) *stream {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://fake.test:80"+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	req.Header = http.Header{"Accept": {"text/event-stream"}, "Accept-Encoding": {"identity"}, "Cache-Control": {"no-cache"}}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DialContext: w.net.DialContext, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req) //nolint:bodyclose // stream.close does
	if err != nil {
		w.Fatalf("ask for %s: %v", path, err)
	}
	return &stream{w, resp, bufio.NewReader(resp.Body), cancel}
}

// want reads lines until one of them is it.
func (s *stream) want(line string) {
	s.w.Helper()
	var got []string
	for {
		l, err := s.lines.ReadString('\n')
		got = append(got, strings.TrimRight(l, "\r\n"))
		if got[len(got)-1] == line {
			return
		}
		if err != nil {
			s.w.Fatalf("got %q and %v, want %q", got, err, line)
		}
	}
}

func (s *stream) close() {
	s.cancel()
	_ = s.resp.Body.Close()
	synctest.Wait()
}

func TestEventsAreSentToWhoAsks(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		w.fake.Push("a", 2)
		s := w.ask("/bot/a")
		s.want(": still here")
		s.want("id: a-000001")
		s.want("id: a-000002")
		w.fake.PushEvent("a", ssefake.Event{ID: "x", Name: "n", Data: "one\ntwo"})
		for _, line := range []string{"id: x", "event: n", "data: one", "data: two", ""} {
			s.want(line)
		}
		time.Sleep(time.Minute)
		s.want(": still here")
		s.close()

		s = w.ask("/bot/a", "Last-Event-ID: a-000002")
		s.want("id: x")
		s.close()
		if got := w.fake.Connections("a"); len(got) != 2 || got[0].Sent != 3 || got[1].Sent != 1 || got[1].After != "a-000002" || got[1].Closed.IsZero() {
			t.Errorf("got %+v, want the books of both", got)
		}
		if n := w.fake.Sends("a", "a-000002") + w.fake.Sends("a", "x"); n != 3 || w.fake.Pushed("a") != 3 || w.fake.Live("a") != 0 {
			t.Errorf("got %d sends of two events, want one of the first and two of the second", n)
		}
		if got := w.fake.Violations("a"); len(got) != 0 {
			t.Errorf("got %q, want no complaint", got)
		}
	})
}

func TestWhereAStreamBegins(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     ssefake.Options
		after string
		want  string
	}{
		{"at the first event", ssefake.Options{}, "", "id: a-000001"},
		{"behind the one that is named", ssefake.Options{}, "a-000003", "id: a-000004"},
		{"with what comes, where nothing is kept", ssefake.Options{LiveOnly: true}, "", "id: a-000006"},
		{"behind the one that is named, there, too", ssefake.Options{LiveOnly: true}, "a-000003", "id: a-000004"},
		{"with what is remembered", ssefake.Options{Remember: 2}, "a-000001", "id: a-000004"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.o, func(w *world) {
				w.fake.Push("a", 5)
				s := w.ask("/bot/a", "Last-Event-ID: "+c.after)
				synctest.Wait()
				w.fake.Push("a", 1)
				s.want(": still here")
				if line, err := s.lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != c.want {
					t.Errorf("got %q and %v, want %q", line, err, c.want)
				}
				s.close()
			})
		})
	}
}

func TestMistakesAreNoted(t *testing.T) {
	for _, c := range []struct {
		header, want string
	}{
		{"Accept: */*", `Accept "*/*"`},
		{"Accept-Encoding: gzip", `Accept-Encoding "gzip"`},
		{"Cache-Control: ", "asked a cache"},
		{"Last-Event-ID: nobody", "which was never sent"},
		{"Last-Event-ID: a-000009", "which was never sent"},
		{"Last-Event-ID: a-000001", "for something later before"},
		{"Last-Event-ID: ", `Last-Event-ID [""]`},
	} {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.fake.Push("a", 2)
			s := w.ask("/bot/a")
			s.want("id: a-000002")
			s.close()
			s = w.ask("/bot/a", "Last-Event-ID: a-000002")
			s.close()
			w.ask("/bot/a", c.header).close()
			if got := w.fake.Violations("a"); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("%s: got %q, want it noted", c.header, got)
			}
		})
	}
	t.Run("whoever speaks behind the request", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			c, err := w.net.DialContext(t.Context(), "tcp", "fake.test:80")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, "GET /bot/a HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\nCache-Control: no-cache\r\n\r\n")
			time.Sleep(time.Second)
			_, _ = io.WriteString(c, "hello?")
			time.Sleep(time.Second)
			_ = c.Close()
			if got := w.fake.Violations("a"); len(got) != 1 || !strings.Contains(got[0], "behind the request") {
				t.Errorf("got %q, want it noted", got)
			}
		})
	})
	t.Run("two connections at once", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			a, b := w.ask("/bot/a"), w.ask("/bot/a")
			synctest.Wait()
			if got := w.fake.MaxConcurrent("a"); got != 2 || w.fake.Live("a") != 2 {
				t.Errorf("got %d at once, want two", got)
			}
			a.close()
			b.close()
		})
	})
}

func TestNastyHabits(t *testing.T) {
	t.Run("a token", func(t *testing.T) {
		bubble(t, ssefake.Options{Token: func(bot string) string { return "t-" + bot }}, func(w *world) {
			for path, want := range map[string]int{"/bot/a": 401, "/bot/a?token=t-a": 200, "/bot/a?token=t-b": 401, "/": 404, "/bot/a/b": 404} {
				s := w.ask(path)
				if s.resp.StatusCode != want {
					t.Errorf("%s: got %d, want %d", path, s.resp.StatusCode, want)
				}
				s.close()
			}
			s := w.ask("/bot/a", "Authorization: Bearer t-a")
			s.want(": still here")
			s.close()
		})
	})
	t.Run("a status", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.fake.Behave("a", ssefake.Behaviour{Status: 503, RetryAfter: "7", Body: "later"})
			s := w.ask("/bot/a")
			s.want("later")
			if s.resp.StatusCode != http.StatusServiceUnavailable || s.resp.Header.Get("Retry-After") != "7" || len(w.fake.Connections("a")) != 0 {
				t.Errorf("got %s and %d connections, want a refusal and none", s.resp.Status, len(w.fake.Connections("a")))
			}
			s.close()
		})
	})
	t.Run("a retry line, and an orderly end", func(t *testing.T) {
		bubble(t, ssefake.Options{Newline: "\r\n", Split: 1}, func(w *world) {
			w.fake.Behave("a", ssefake.Behaviour{Retry: "5000", End: true})
			w.fake.Push("a", 1)
			s := w.ask("/bot/a")
			s.want("retry: 5000")
			rest, err := io.ReadAll(s.lines)
			if err != nil || !strings.Contains(string(rest), "id: a-000001\r\ndata: {") {
				t.Errorf("got %q and %v, want the event and the end", rest, err)
			}
			s.close()
		})
	})
	for name, end := range map[string]func(w *world){
		"a cut": func(w *world) { w.fake.Cut("a") }, "garbage": func(w *world) { w.fake.Raw("a", ssefake.Garbage()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				s := w.ask("/bot/a")
				s.want(": still here")
				end(w)
				if _, err := io.ReadAll(s.lines); err == nil {
					t.Error("got an orderly end, want none")
				}
				s.close()
			})
		})
	}
	t.Run("silence", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			s := w.ask("/bot/a")
			s.want(": still here")
			w.fake.Silence("a")
			w.fake.Push("a", 1)
			time.AfterFunc(time.Hour, s.cancel)
			if b, err := io.ReadAll(s.lines); err == nil || len(b) != 0 {
				t.Errorf("got %q and %v in an hour, want nothing", b, err)
			}
			s.close()
		})
	})
}

func TestStepsAreTold(t *testing.T) {
	var mu sync.Mutex
	var steps []string
	tell := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, what)
	}
	o := ssefake.Options{
		Step:  func(bot, step string) { tell(bot + ":" + step) },
		Asked: func(bot, after string) { tell(bot + " asked for what follows " + after) },
	}
	bubble(t, o, func(w *world) {
		w.fake.Push("a", 1)
		s := w.ask("/bot/a", "Last-Event-ID: x")
		s.want("id: a-000001")
		s.close()
	})
	if want := []string{"a:dial", "a asked for what follows x", "a:answer", "a:comment", "a:event", "a:end"}; !slices.Equal(steps, want) {
		t.Errorf("got %q, want %q", steps, want)
	}
}

func TestConfigIsJSONWithoutASecret(t *testing.T) {
	raw := ssefake.New(ssefake.Options{}).Config("http://h:1/", "a", map[string]string{"env": "T"})
	var c map[string]any
	if err := json.Unmarshal(raw, &c); err != nil || c["url"] != "http://h:1/bot/a" {
		t.Errorf("got %s and %v, want a config", raw, err)
	}
}

func TestAsAHandlerOverRealSockets(t *testing.T) {
	fake := ssefake.New(ssefake.Options{})
	srv := httptest.NewServer(fake)
	defer srv.Close()
	defer fake.Close()
	fake.Push("a", 1000)
	fake.Behave("a", ssefake.Behaviour{End: true})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/bot/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if n := strings.Count(string(b), "\nid: "); err != nil || n != 1000 {
		t.Errorf("got %d events and %v, want a thousand", n, err)
	}
}
