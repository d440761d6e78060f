package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// receiver is the smallest program that can stand behind a target: it takes every
// webhook that it is sent over real HTTP, and hands each to seen.
type receiver struct {
	listener net.Listener
	seen     func(webhook)
}

// webhook is what a receiver reads of a delivery: its idempotency key, and what is
// in the envelope.
type webhook struct {
	id      string // stable over attempts
	attempt string
	event   string
	kind    string
	text    string
}

func newReceiver(ctx context.Context, seen func(webhook)) (*receiver, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	return &receiver{l, seen}, nil
}

func (r *receiver) url() string { return "http://" + r.listener.Addr().String() + "/events" }

// run serves until ctx ends.
func (r *receiver) run(ctx context.Context) error {
	s := &http.Server{Handler: http.HandlerFunc(r.take), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(r.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
	}
	_ = s.Close() // whoever still sends is about to stop, too
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	return nil
}

func (r *receiver) take(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(io.LimitReader(in.Body, 1<<20))
	var envelope struct {
		Type string `json:"type"`
		Data struct {
			ID   string `json:"id"`
			Text string `json:"text"`
		} `json:"data"`
	}
	if err != nil || json.Unmarshal(body, &envelope) != nil {
		http.Error(w, "not an envelope", http.StatusBadRequest)
		return
	}
	r.seen(webhook{in.Header.Get("webhook-id"), in.Header.Get("leasehold-attempt"), envelope.Data.ID, envelope.Type, envelope.Data.Text})
	w.WriteHeader(http.StatusNoContent)
}
