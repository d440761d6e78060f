package websocket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// proof is what answered pings prove. One ping is on its way at a time: a server may
// answer the last of several and no other. An answered one proves all that was
// written before it, so that many messages share a few.
type proof struct {
	mu      sync.Mutex    // guards what follows
	flight  chan struct{} // closed when the ping on its way has ended; nil = there is none
	written int           // messages
	proven  int           // of them
	broken  bool          // no ping can be sent any more
}

// prove returns nil once the server has read what was written before the call.
func (s *session) prove(ctx context.Context) error {
	p := &s.proof
	p.mu.Lock()
	p.written++
	mine := p.written
	p.mu.Unlock()
	for {
		p.mu.Lock()
		proven, broken := p.proven >= mine, p.broken
		p.mu.Unlock()
		switch {
		case proven:
			return nil
		case broken || s.fenced.Load():
			return errUnproven
		}
		select {
		case <-s.ping(s.plan.answer.within):
		case <-ctx.Done():
			return fmt.Errorf("the server has not answered the ping that followed the message: %w", ctx.Err())
		case <-s.ended:
			return errUnproven
		}
	}
}

var errUnproven = errors.New("the connection ended before the server answered the ping that followed the message")

// ping sends one, unless one is on its way, and returns what is closed when that has
// ended. Nobody's context interrupts it: half a frame would end the connection.
func (s *session) ping(within time.Duration) <-chan struct{} {
	p := &s.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flight != nil {
		return p.flight
	}
	flight, upTo := make(chan struct{}), p.written
	p.flight = flight
	s.beats.Add(1)
	s.link.Go(func() {
		defer s.beats.Done()
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		err := s.conn.Ping(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err == nil:
			p.proven = upTo
		case ctx.Err() == nil:
			p.broken = true
		}
		p.flight = nil
		close(flight)
	})
	return flight
}
