package delivery

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/channel"
)

// BenchmarkDispatch measures events per second from the outbox to a program on
// this machine, beside a plain client that posts the same bodies in the same
// run. Its store keeps nothing: what one costs is measured with a real one.
func BenchmarkDispatch(b *testing.B) {
	var got atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got.Add(1)
	}))
	defer srv.Close()
	for _, lanes := range []int{1, 64} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			const n = 10_000
			var r rates
			for b.Loop() {
				box := newOutbox()
				for i := range n {
					box.add("acme", channel.Event{
						Conversation: channel.Ref{ID: fmt.Sprint("C", i%lanes)}, Sender: channel.Ref{ID: "U1", Name: "Ada"},
						Text: strings.Repeat("word ", 40), Raw: []byte(`{"text":"` + strings.Repeat("word ", 80) + `"}`),
					}, "app")
				}
				body, _, err := seal(box.events[1], Node{Name: "gw"}, true, true)
				if err != nil {
					b.Fatal(err)
				}
				plain := post(b, srv.URL, body, lanes, n)

				d, err := New(box, []Target{{Name: "app", Kind: "http", URL: srv.URL, Concurrency: lanes}}, Options{Node: Node{Name: "gw"}})
				if err != nil {
					b.Fatal(err)
				}
				bench := launch(b, d)
				got.Store(0)
				began := time.Now()
				bench.hold("acme")
				for got.Load() < n {
					time.Sleep(time.Millisecond)
				}
				took := time.Since(began)
				bench.end()
				r.add(n, took, plain)
			}
			r.report(b)
		})
	}
}

// rates sums what several rounds took, so that a busy machine slows both sides alike.
type rates struct {
	n           int
	took, plain time.Duration
}

func (r *rates) add(n int, took, plain time.Duration) {
	r.n, r.took, r.plain = r.n+n, r.took+took, r.plain+plain
}

func (r *rates) report(b *testing.B) {
	b.ReportMetric(float64(r.n)/r.took.Seconds(), "events/s")
	b.ReportMetric(float64(r.n)/r.plain.Seconds(), "plain/s")
	b.ReportMetric(r.plain.Seconds()/r.took.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// post sends n bodies with so many goroutines, as anybody would.
func post(b *testing.B, url string, body []byte, goroutines, n int) time.Duration {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: goroutines}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	began := time.Now()
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}
