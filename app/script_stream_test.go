package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"leasehold/admin"
	"leasehold/internal/loop"
)

// listener is what an EventSource is: it reads a stream, and comes back with the last id
// when that ends, after as long as it was told.
type listener struct {
	client *http.Client
	path   string
	last   string
	retry  time.Duration

	mu    sync.Mutex     // guards what follows
	heard map[string]int // by webhook id
	event map[string]int // by the event's id
}

func cmdListens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: listens target query")
	}
	l := &listener{
		client: &http.Client{Transport: admin.Socket(ts.MkAbs("data/leasehold.sock"))}, retry: time.Second,
		path: "/v1/targets/" + args[0] + "/stream?" + args[1], heard: map[string]int{}, event: map[string]int{},
	}
	w := of(ts)
	if w.listeners == nil {
		w.listeners = map[string]*listener{}
	}
	w.listeners[args[0]] = l
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.read(ctx)
			_ = loop.Sleep(ctx, l.retry)
		}
	}()
	ts.Defer(func() { stop(); <-done })
}

// read reads one stream to its end.
func (l *listener) read(ctx context.Context) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://leasehold"+l.path, http.NoBody)
	if err != nil {
		return
	}
	if l.last != "" {
		r.Header.Set("Last-Event-ID", l.last)
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return // nothing runs
	}
	defer func() { _ = answer.Body.Close() }()
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		switch name, value, _ := strings.Cut(in.Text(), ": "); name {
		case "id":
			l.last = value
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil {
				l.retry = time.Duration(ms) * time.Millisecond
			}
		case "data":
			l.note(value)
		}
	}
}

func (l *listener) note(data string) {
	var p struct {
		WebhookID string `json:"webhook_id"`
		Event     struct{ Data struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		p.WebhookID = err.Error() // nobody waits for that one
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[p.WebhookID]++
	l.event[p.Event.Data.ID]++
}

func cmdHeard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: heard target n [again]")
	}
	want, again := args[1], ""
	if len(args) == 3 {
		again = args[2]
	}
	l := of(ts).listeners[args[0]]
	await(ts, func() (string, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		twice := 0
		for _, n := range l.heard {
			if n > 1 {
				twice++
			}
		}
		ok := strconv.Itoa(len(l.heard)) == want && len(l.event) == len(l.heard) && (again == "" || strconv.Itoa(twice) == again)
		return fmt.Sprintf("heard: got %d ids of %d events, %d of them again, want %s and %s", len(l.heard), len(l.event), twice, want, again), ok
	})
}
