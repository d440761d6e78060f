package delivery

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
)

// network is one listener in memory and the ways to fail of what lies before it.
// (channeltest has a better one, but stands above this package.)
type network struct {
	conns   chan net.Conn
	closed  chan struct{}
	refuse  atomic.Bool
	swallow atomic.Bool
}

func newNetwork() *network {
	return &network{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial is a Dialer.
func (n *network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if n.refuse.Load() {
		return nil, errors.New("connection refused")
	}
	if n.swallow.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	select {
	case n.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr make it a net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (n *network) Close() error {
	close(n.closed)
	return nil
}

// Addr is nobody's.
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }
