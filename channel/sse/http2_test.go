package sse_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
)

// encrypted is a Bench whose HTTP client trusts a test server and speaks HTTP/2.
type encrypted struct {
	*channeltest.Bench
	client *http.Client
}

func (e encrypted) HTTPClient() *http.Client { return e.client }

func TestOverHTTP2(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(cancel context.CancelCauseFunc)
		class channel.Class
		code  string
	}{
		{"an orderly end", nil, channel.Transient, "closed"},
		{"a reset", func(context.CancelCauseFunc) { panic(http.ErrAbortHandler) }, channel.Transient, "broken"},
		{"a drain", func(cancel context.CancelCauseFunc) { cancel(channel.ErrDraining) }, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			memory, left := channeltest.NewMemory(), make(chan struct{})
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "id: "+r.Proto+"\ndata: {}\n\n")
				_ = http.NewResponseController(w).Flush()
				for !memory.Has("HTTP/2.0") && r.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
				if c.end != nil {
					c.end(cancel)
					<-r.Context().Done() // the stream has been given up
				}
			}))
			srv.EnableHTTP2 = true
			srv.StartTLS()
			defer srv.Close()
			ch, err := build(map[string]any{"url": srv.URL + "/stream"})
			if err != nil {
				t.Fatal(err)
			}
			err = ch.Run(ctx, channel.NewLink(encrypted{channeltest.NewBench(nil, memory), srv.Client()}))
			if got := channel.Classify(err); (err == nil) != (c.code == "") || err != nil && (got.Class != c.class || got.Code != c.code) {
				t.Errorf("got %v (%s %q), want %s %q", err, got.Class, got.Code, c.class, c.code)
			}
			if !memory.Has("HTTP/2.0") {
				t.Errorf("got %+v, want an event over HTTP/2", memory.Events())
			}
			<-left
		})
	}
}
