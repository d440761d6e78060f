package websocketfake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel/channeltest"
	"leasehold/channel/websocket/websocketfake"
)

// world is a fake on a network in memory.
type world struct {
	*testing.T
	net  *channeltest.Net
	fake *websocketfake.Server
}

func bubble(t *testing.T, o websocketfake.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, net: channeltest.NewNet(), fake: websocketfake.New(o)}
		ln, err := w.net.Listen("p:80")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		go func() { served <- w.fake.Serve(ln) }()
		defer func() {
			w.fake.Close()
			if err := <-served; err != nil {
				t.Errorf("serve: %v", err)
			}
		}()
		f(w)
	})
}

// peer is a client that does as it is told.
type peer struct {
	w  *world
	ws *websocket.Conn
}

func (w *world) dial(path string) (*peer, *http.Response, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: w.net.DialContext, DisableKeepAlives: true}}
	ws, resp, err := websocket.Dial(w.Context(), "ws://p:80"+path, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, resp, err
	}
	return &peer{w, ws}, resp, nil
}

func (w *world) connect(bot string) *peer {
	w.Helper()
	p, _, err := w.dial("/bot/" + bot) //nolint:bodyclose // the library does
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (p *peer) read() string {
	p.w.Helper()
	_, b, err := p.ws.Read(p.w.Context())
	if err != nil {
		p.w.Fatalf("read: %v", err)
	}
	return string(b)
}

func (p *peer) readError() error {
	_, _, err := p.ws.Read(p.w.Context())
	return err
}

func (p *peer) want(part string) {
	p.w.Helper()
	if got := p.read(); !strings.Contains(got, part) {
		p.w.Fatalf("got %s, want %s", got, part)
	}
}

func (p *peer) say(s string) {
	p.w.Helper()
	if err := p.ws.Write(p.w.Context(), websocket.MessageText, []byte(s)); err != nil {
		p.w.Fatalf("say %s: %v", s, err)
	}
}

func (p *peer) ack(id string) {
	p.w.Helper()
	p.say(fmt.Sprintf(`{"type":"ack","id":%q}`, id))
}

func (p *peer) close() {
	_ = p.ws.CloseNow()
	synctest.Wait()
}

func TestEventsAreSentUntilTheyAreAcknowledged(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		w.fake.Push("a", 3)
		p := w.connect("a")
		p.want("hello")
		for i := range 3 {
			p.want(fmt.Sprintf("a-00000%d", i+1))
		}
		p.ack("a-000002")
		synctest.Wait()
		p.close()
		p = w.connect("a")
		p.want("hello")
		p.want("a-000001")
		p.want("a-000003")
		p.ack("a-000001")
		p.ack("a-000003")
		w.fake.Push("a", 1)
		p.want("a-000004")
		synctest.Wait()
		if got := w.fake.Acked("a"); !slices.Equal(got, []string{"a-000001", "a-000002", "a-000003"}) || w.fake.AckedCount("a") != 3 {
			t.Errorf("got %q acknowledged, want the first three", got)
		}
		if got := w.fake.Unacked("a"); !slices.Equal(got, []string{"a-000004"}) {
			t.Errorf("got %q left, want the fourth", got)
		}
		if got := w.fake.Sends("a", "a-000001"); got != 2 {
			t.Errorf("got the first sent %d times, want twice", got)
		}
		p.close()
		if v := w.fake.Violations("a"); len(v) != 0 {
			t.Errorf("got violations %q, want none", v)
		}
	})
}

func TestTheBookIsStrict(t *testing.T) {
	for _, c := range []struct{ name, say, want string }{
		{"an unknown event", `{"type":"ack","id":"a-000009"}`, "is no event"},
		{"another bot's event", `{"type":"ack","id":"b-000001"}`, "is no event"},
		{"an event of another spelling", `{"type":"ack","id":"a-1"}`, "is no event"},
		{"an event that was not sent here", `{"type":"ack","id":"a-000002"}`, "on a connection that it was not sent on"},
		{"what is no JSON", `ack`, "no JSON"},
		{"an unknown type", `{"type":"dance"}`, "unknown thing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, websocketfake.Options{Window: 1}, func(w *world) {
				w.fake.Push("a", 2)
				p := w.connect("a")
				p.want("hello")
				p.want("a-000001")
				p.say(c.say)
				synctest.Wait()
				if v := w.fake.Violations("a"); len(v) != 1 || !strings.Contains(v[0], c.want) {
					t.Errorf("got %q, want one that says %q", v, c.want)
				}
				p.close()
			})
		})
	}
	t.Run("a repeated acknowledgement is counted", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Push("a", 1)
			p := w.connect("a")
			p.want("hello")
			p.want("a-000001")
			p.ack("a-000001")
			p.ack("a-000001")
			synctest.Wait()
			if got := w.fake.Repeated("a"); got != 1 || w.fake.AckedCount("a") != 1 {
				t.Errorf("got %d repeated, %d acknowledged, want one and one", got, w.fake.AckedCount("a"))
			}
			p.close()
		})
	})
}

func TestTheWindowHoldsBack(t *testing.T) {
	bubble(t, websocketfake.Options{Window: 2}, func(w *world) {
		w.fake.Push("a", 5)
		p := w.connect("a")
		p.want("hello")
		p.want("a-000001")
		p.want("a-000002")
		synctest.Wait()
		if got := w.fake.Connections("a")[0].Sent; got != 2 {
			t.Errorf("got %d sent, want the window of 2", got)
		}
		p.ack("a-000001")
		p.want("a-000003")
		p.close()
	})
}

func TestARetryComesWithBackoff(t *testing.T) {
	bubble(t, websocketfake.Options{Retry: 10 * time.Second}, func(w *world) {
		w.fake.Push("a", 1)
		p := w.connect("a")
		p.want("hello")
		start := time.Now()
		for _, want := range []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second} {
			p.want("a-000001")
			if got := time.Since(start); got != want {
				t.Errorf("got it sent after %s, want %s", got, want)
			}
		}
		p.ack("a-000001")
		w.fake.Push("a", 1)
		p.want("a-000002")
		p.close()
	})
}

func TestFireForgetsAndResumes(t *testing.T) {
	bubble(t, websocketfake.Options{Fire: true}, func(w *world) {
		w.fake.Push("a", 3)
		p := w.connect("a")
		p.want("hello")
		for range 3 {
			p.read()
		}
		p.close()
		w.fake.Push("a", 1)
		p = w.connect("a")
		p.want("hello")
		p.want("a-000004")
		p.say(`{"type":"resume","after":"a-000002"}`)
		p.want("a-000003")
		p.want("a-000004")
		p.close()
		p, _, err := w.dial("/bot/a?since=a-000003") //nolint:bodyclose // the library does
		if err != nil {
			t.Fatal(err)
		}
		p.want("hello")
		p.want("a-000004")
		p.close()
	})
}

func TestTokens(t *testing.T) {
	tokens := func(bot string) string { return "token-of-" + bot }
	t.Run("by header or query", func(t *testing.T) {
		bubble(t, websocketfake.Options{Token: tokens}, func(w *world) {
			_, resp, err := w.dial("/bot/a?token=wrong") //nolint:bodyclose // the library does
			if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("got %v, want 401 for a wrong token", err)
			}
			p, _, err := w.dial("/bot/a?token=token-of-a") //nolint:bodyclose // the library does
			if err != nil {
				t.Fatal(err)
			}
			p.want("hello")
			if got := w.fake.Connections("a")[0].Token; got != "token-of-a" {
				t.Errorf("got it booked with %q, want its token", got)
			}
			p.close()
		})
	})
	t.Run("by login", func(t *testing.T) {
		bubble(t, websocketfake.Options{Token: tokens, Login: true}, func(w *world) {
			p := w.connect("a")
			p.say(`{"type":"login","token":"wrong"}`)
			p.want("invalid_token")
			if got := websocket.CloseStatus(p.readError()); got != 4001 {
				t.Errorf("got close code %d, want 4001", got)
			}
			p = w.connect("a")
			w.fake.Push("a", 1)
			synctest.Wait()
			p.say(`{"type":"login","token":"token-of-a"}`)
			p.want("hello") // nothing before it
			p.want("a-000001")
			p.close()
		})
	})
}

func TestBehaviour(t *testing.T) {
	t.Run("a refusal", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Behave("a", websocketfake.Behaviour{Status: 429, RetryAfter: "7", Body: "slow down"})
			_, resp, err := w.dial("/bot/a") //nolint:bodyclose // the library does
			if err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "7" {
				t.Errorf("got %v, want 429 with its header", err)
			}
			w.fake.Behave("a", websocketfake.Behaviour{})
			p := w.connect("a")
			p.want("hello")
			p.close()
		})
	})
	t.Run("no pong", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Behave("a", websocketfake.Behaviour{NoPong: true})
			p := w.connect("a")
			p.want("hello")
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			defer cancel()
			go func() { _, _, _ = p.ws.Read(w.Context()) }()
			if err := p.ws.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want no pong", err)
			}
			if got := w.fake.Connections("a")[0].Pings; got != 1 {
				t.Errorf("got %d pings booked, want one", got)
			}
			p.close()
		})
	})
	t.Run("its own pings", func(t *testing.T) {
		bubble(t, websocketfake.Options{PingEvery: time.Second}, func(w *world) {
			pings := 0
			client := &http.Client{Transport: &http.Transport{DialContext: w.net.DialContext}}
			ws, _, err := websocket.Dial(w.Context(), "ws://p:80/bot/a", &websocket.DialOptions{ //nolint:bodyclose // the library does
				HTTPClient: client, OnPingReceived: func(context.Context, []byte) bool { pings++; return true },
			})
			if err != nil {
				t.Fatal(err)
			}
			p := &peer{w, ws}
			p.want("hello")
			go func() { _, _, _ = ws.Read(w.Context()) }()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if pings < 9 || pings > 10 {
				t.Errorf("got %d pings in 10 s, want one each second", pings)
			}
			p.close()
		})
	})
	t.Run("silence", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			p := w.connect("a")
			p.want("hello")
			w.fake.Silence("a")
			w.fake.Push("a", 1)
			w.fake.Say("a", "unheard")
			ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
			defer cancel()
			if _, _, err := p.ws.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want silence", err)
			}
			p.close()
			if w.fake.Live("a") != 0 {
				t.Error("the platform did not notice the end")
			}
		})
	})
	t.Run("a close code", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			p := w.connect("a")
			p.want("hello")
			w.fake.CloseWith("a", 1012, "bye")
			if got := websocket.CloseStatus(p.readError()); got != 1012 {
				t.Errorf("got close code %d, want 1012", got)
			}
		})
	})
	t.Run("a client that says goodbye", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			p := w.connect("a")
			p.want("hello")
			_ = p.ws.Close(4321, "")
			synctest.Wait()
			if got := w.fake.Connections("a")[0]; got.CloseCode != 4321 || got.Closed.IsZero() {
				t.Errorf("got %+v, want the close code booked", got)
			}
		})
	})
	t.Run("what it cannot be asked", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			for _, path := range []string{"/", "/bot/", "/bot/a/b", "/robot/a"} {
				if _, resp, err := w.dial(path); err == nil || resp.StatusCode != http.StatusNotFound { //nolint:bodyclose // the library does
					t.Errorf("%s: got %v, want 404", path, err)
				}
			}
		})
	})
}

func TestConcurrentConnectionsAreCounted(t *testing.T) {
	t.Run("at once without grace", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			a, b := w.connect("a"), w.connect("a")
			other := w.connect("b")
			synctest.Wait()
			if got := w.fake.MaxConcurrent("a"); got != 2 || w.fake.Live("a") != 2 || w.fake.Live("") != 3 {
				t.Errorf("got %d at most, %d live of 3, want two", got, w.fake.Live("a"))
			}
			if got := w.fake.Connections("a")[1].Concurrent; got != 2 {
				t.Errorf("got the second one booked with %d, want 2", got)
			}
			time.Sleep(time.Second)
			a.say(`{"type":"ping"}`)
			synctest.Wait()
			if got := w.fake.Connections("a"); !got[0].Heard.After(got[1].Opened) || !got[1].Heard.IsZero() {
				t.Errorf("got %+v, want the first heard after the second came", got)
			}
			a.close()
			b.close()
			other.close()
		})
	})
	t.Run("after the grace", func(t *testing.T) {
		bubble(t, websocketfake.Options{Grace: time.Second}, func(w *world) {
			a := w.connect("a")
			a.want("hello")
			time.AfterFunc(500*time.Millisecond, func() { _ = a.ws.CloseNow() })
			b := w.connect("a")
			b.want("hello")
			if got := w.fake.MaxConcurrent("a"); got != 1 {
				t.Errorf("got %d, want one: the first ended within the grace", got)
			}
			if got := w.fake.Connections("a"); got[0].Waited != 0 || got[1].Waited != 500*time.Millisecond {
				t.Errorf("got waits of %v and %v, want none and 500ms", got[0].Waited, got[1].Waited)
			}
			c := w.connect("a")
			c.want("hello")
			if got := w.fake.MaxConcurrent("a"); got != 2 {
				t.Errorf("got %d, want two: the second is there", got)
			}
			b.close()
			c.close()
		})
	})
}

func TestStepsAreTold(t *testing.T) {
	var mu sync.Mutex
	var steps []string
	tell := func(bot, what string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, bot+":"+what)
	}
	o := websocketfake.Options{Step: tell, Acked: tell}
	bubble(t, o, func(w *world) {
		w.fake.Push("a", 1)
		p := w.connect("a")
		p.want("hello")
		p.want("a-000001")
		p.ack("a-000001")
		go func() { _, _, _ = p.ws.Read(w.Context()) }()
		if err := p.ws.Ping(w.Context()); err != nil {
			t.Error(err)
		}
		p.close()
	})
	for _, step := range append(websocketfake.Steps(), "a-000001", websocketfake.StepEnd) {
		if !slices.Contains(steps, "a:"+step) {
			t.Errorf("got %q, want %s among them", steps, step)
		}
	}
}

func TestConfigIsJSONWithoutASecret(t *testing.T) {
	for _, o := range []websocketfake.Options{{}, {Fire: true}, {Login: true, Token: func(string) string { return "t" }}} {
		raw := websocketfake.New(o).Config("ws://h:1/", "a", map[string]string{"env": "T"})
		var c map[string]any
		if err := json.Unmarshal(raw, &c); err != nil || c["url"] != "ws://h:1/bot/a" {
			t.Errorf("got %s and %v, want a config", raw, err)
		}
	}
}

func TestManyEventsOverRealSockets(t *testing.T) {
	if testing.Short() {
		t.Log("2,000 events instead of 40,000")
	}
	fake := websocketfake.New(websocketfake.Options{})
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- fake.Serve(ln) }()
	each := 2000
	if testing.Short() {
		each = 100
	}
	var wg sync.WaitGroup
	for i := range 20 {
		bot := fmt.Sprintf("bot%d", i)
		fake.Push(bot, each)
		wg.Go(func() {
			ws, _, err := websocket.Dial(t.Context(), "ws://"+ln.Addr().String()+"/bot/"+bot, nil) //nolint:bodyclose // the library does
			if err != nil {
				t.Error(err)
				return
			}
			for range each + 1 {
				_, b, err := ws.Read(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				var m struct{ ID string }
				if err := json.Unmarshal(b, &m); err != nil {
					t.Error(err)
				}
				if m.ID != "" {
					_ = ws.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ack","id":"`+m.ID+`"}`))
				}
			}
			_ = ws.Close(1000, "")
		})
	}
	wg.Wait()
	fake.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for i := range 20 {
		bot := fmt.Sprintf("bot%d", i)
		if got := fake.AckedCount(bot); got != each || len(fake.Violations(bot)) != 0 {
			t.Errorf("%s: got %d acknowledged and %q, want %d and none", bot, got, fake.Violations(bot), each)
		}
	}
}
