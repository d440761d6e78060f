package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"leasehold/channel/websocket/websocketfake"
)

func cmdPlatform(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: platform [token=T]")
	}
	var o websocketfake.Options
	if len(args) == 1 {
		token := strings.TrimPrefix(args[0], "token=")
		o.Token = func(string) string { return token }
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	w := of(ts)
	w.platform = websocketfake.New(o)
	served := make(chan error, 1)
	go func() { served <- w.platform.Serve(l) }()
	ts.Defer(func() {
		w.platform.Close()
		if err := <-served; err != nil {
			ts.Logf("the platform: %v", err)
		}
	})
	ts.Setenv("PLATFORM", "ws://"+l.Addr().String())
}

func cmdPush(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	of(ts).platform.Push(args[0], n)
}

func cmdPress(ts *testscript.TestScript, _ bool, args []string) {
	of(ts).platform.PushFrame(args[0], "press-1", []byte(`{"type":"action","id":"press-1"}`))
}

func cmdAnswered(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[1])
	await(ts, func() (string, bool) {
		got, err := json.Marshal(of(ts).platform.Answers(args[0]))
		ts.Check(err)
		return fmt.Sprintf("answers: got %s, want %s", got, want), want.Match(got)
	})
}

func cmdCut(ts *testscript.TestScript, _ bool, args []string) { of(ts).platform.Cut(args[0]) }

func cmdAcked(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	await(ts, func() (string, bool) {
		got := of(ts).platform.AckedCount(args[0])
		return fmt.Sprintf("acknowledged: got %d, want %d", got, want), got == want
	})
}

// program takes webhooks, and notes each by its id.
type program struct {
	server *httptest.Server

	mu       sync.Mutex // guards what follows
	status   int
	taken    map[string]int // 2xx answers by webhook id
	replayed map[string]int // those of them that were marked as a replay
	pings    []string       // method, path and body of calls of /ping

	key        string // that it knows; "" = it takes what is not signed, too
	refused    int    // calls that this key has not signed
	signatures int    // of the last call
}

func cmdPinged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pinged regexp")
	}
	want, p := regexp.MustCompile(args[0]), of(ts).program
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.pings); n == 0 || !want.MatchString(p.pings[n-1]) {
		ts.Fatalf("got the pings %q, want the last to match %s", p.pings, want)
	}
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/ping") {
		p.pings = append(p.pings, r.Method+" "+r.URL.Path+" "+string(body))
		return
	}
	if !p.verify(body, r.Header) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if p.status < 300 {
		p.taken[r.Header.Get("webhook-id")]++
		if r.Header.Get("leasehold-replay") == "true" {
			p.replayed[r.Header.Get("webhook-id")]++
		}
	}
	w.WriteHeader(p.status)
	if p.status >= 300 {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")) // as programs do that say what they got
	}
}

func cmdProgram(ts *testscript.TestScript, _ bool, args []string) {
	p := &program{status: http.StatusNoContent, taken: map[string]int{}, replayed: map[string]int{}}
	p.server = httptest.NewUnstartedServer(p)
	if len(args) == 1 {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1"+args[0])
		ts.Check(err)
		ts.Check(p.server.Listener.Close())
		p.server.Listener = l
	}
	p.server.Start()
	ts.Defer(p.server.Close)
	of(ts).program = p
	ts.Setenv("PROGRAM", p.server.URL+"/events")
	ts.Setenv("PING", p.server.URL+"/ping/7f3c-planted-ping")
}

func cmdAnswer(ts *testscript.TestScript, _ bool, args []string) {
	p := of(ts).program
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

func cmdTook(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	p := of(ts).program
	await(ts, func() (string, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Sprintf("taken deliveries: got %d, want %d: %v", len(p.taken), want, p.taken), len(p.taken) == want
	})
}

func cmdReplays(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	p := of(ts).program
	await(ts, func() (string, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		got := 0
		for id, n := range p.replayed {
			if p.taken[id] > 0 { // under the id that it had
				got += n
			}
		}
		return fmt.Sprintf("taken replays: got %d, want %d: %v", got, want, p.replayed), got == want
	})
}
