package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	throughBots   = 20
	throughEvents = 500 // of each bot in a round: seconds' worth in all
	// throughCalls is how many calls a target has in flight by default, and the bare
	// client has, too.
	throughCalls = 32
)

// throughRows measures the whole way: a platform says something, the program
// stores it, acknowledges it, and delivers it to a webhook on the same machine.
func throughRows(ctx context.Context, b *bench) ([]row, error) {
	r, err := newReceiver(ctx)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	var through, bare []float64
	err = b.with(ctx, setup{bots: throughBots, program: r.url}, func(n *node, p *platform) error {
		if _, err := b.round(ctx, n, p, r); err != nil { // connections and code get warm
			return err
		}
		for range max(3, b.count/2) {
			rate, err := b.round(ctx, n, p, r)
			if err != nil {
				return err
			}
			through = append(through, rate)
			if rate, err = r.bare(ctx); err != nil {
				return err
			}
			bare = append(bare, rate)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ours, theirs := median(through), median(bare)
	return []row{{
		what: fmt.Sprintf("through to a webhook, %d connections", throughBots), measured: count(ours) + " events/s",
		beside: fmt.Sprintf("a bare client's POSTs, %d at once: %s/s", throughCalls, count(theirs)), ratio: fmt.Sprintf("%.2f", ours/theirs),
	}}, nil
}

// round has every bot say something, and returns how many events per second came
// through. Each must come once.
func (b *bench) round(ctx context.Context, n *node, p *platform, r *receiver) (float64, error) {
	r.forget()
	began := time.Now()
	for i := range throughBots {
		if err := p.push(bot(i), throughEvents); err != nil {
			return 0, err
		}
	}
	want := throughBots * throughEvents
	err := n.await(ctx, fmt.Sprintf("the last of %d webhooks", want), time.Minute, func() (bool, error) { return r.different() >= want, nil })
	if err != nil {
		return 0, err
	}
	if calls := r.calls.Load(); calls != int64(want) {
		return 0, fmt.Errorf("got %d webhooks for %d events, want each once", calls, want)
	}
	return float64(want) / time.Since(began).Seconds(), nil
}

// receiver is the program behind the target, in this process.
type receiver struct {
	url    string
	server *http.Server
	ended  chan struct{}
	calls  atomic.Int64
	heard  func(body []byte, at time.Time) // nil = nobody asks; set before the first webhook

	mu   sync.Mutex // guards ids, body
	ids  map[string]struct{}
	body []byte // of the last webhook
}

func newReceiver(ctx context.Context) (*receiver, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{url: "http://" + l.Addr().String() + "/", ended: make(chan struct{}), ids: map[string]struct{}{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.ended)
		_ = r.server.Serve(l) // it ends with stop; what breaks before that breaks the measurement
	}()
	return r, nil
}

func (r *receiver) stop() {
	_ = r.server.Close()
	<-r.ended
}

// ServeHTTP takes a webhook.
func (r *receiver) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.ids[in.Header.Get("webhook-id")] = struct{}{}
	r.body = body
	r.mu.Unlock()
	r.calls.Add(1)
	if r.heard != nil {
		r.heard(body, time.Now())
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.ids)
	r.calls.Store(0)
}

func (r *receiver) different() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

// bare posts the last webhook again and again, with as many calls at once as a
// target has, and returns how many there were per second.
func (r *receiver) bare(ctx context.Context) (float64, error) {
	r.mu.Lock()
	body := r.body
	r.mu.Unlock()
	transport := &http.Transport{MaxIdleConnsPerHost: throughCalls}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	post := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
	const all = throughBots * throughEvents
	var next atomic.Int64
	errs := make([]error, throughCalls)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range errs {
		wg.Go(func() {
			for next.Add(1) <= all && errs[i] == nil {
				errs[i] = post()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("post without the program: %w", err)
	}
	return all / time.Since(began).Seconds(), nil
}
