package channeltest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"leasehold/internal/loop"
)

// ways are those of a connection's two directions that stand still.
type ways struct{ toFar, toNear bool }

var bothWays = ways{toFar: true, toNear: true}

func (f ways) holds(toNear bool) bool { return toNear && f.toNear || !toNear && f.toFar }

func (f ways) with(more ways) ways {
	return ways{toFar: f.toFar || more.toFar, toNear: f.toNear || more.toNear}
}

// wire is one connection through a Proxy.
type wire struct {
	near net.Conn // the dialler's

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	far     net.Conn // the target's; nil until it is dialled
	held    ways
	void    bool // nothing goes to the dialler any more
	dead    bool
	delay   time.Duration
}

// pump carries one direction, the one towards the dialler if toNear.
func (w *wire) pump(ctx context.Context, dst, src net.Conn, toNear bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if !w.pass(ctx, toNear) {
			return
		}
		if n > 0 && !w.drops(toNear) {
			if _, err := dst.Write(buf[:n]); err != nil && !w.drops(toNear) {
				w.cut()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if !w.drops(toNear) {
				closeWrite(dst)
			}
			return
		case err != nil:
			w.cut()
			return
		}
	}
}

// pass waits while bytes are held; false means that the connection is gone.
func (w *wire) pass(ctx context.Context, toNear bool) bool {
	w.mu.Lock()
	for w.held.holds(toNear) && !w.dead {
		w.changed.Wait()
	}
	delay, dead := w.delay, w.dead
	w.mu.Unlock()
	return !dead && loop.Sleep(ctx, delay) == nil
}

func (w *wire) drops(toNear bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return toNear && w.void
}

func (w *wire) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.dead
}

func (w *wire) attach(far net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead { // cut while the target was dialled
		closeConn(far, true)
		return false
	}
	w.far = far
	return true
}

func (w *wire) hold(f ways) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = w.held.with(f)
}

func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = ways{}
	w.changed.Broadcast()
}

func (w *wire) slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

func (w *wire) halfClose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.void = true
	closeWrite(w.near)
}

func (w *wire) cut() { w.end(true) }

func (w *wire) close() { w.end(false) }

func (w *wire) end(reset bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return
	}
	w.dead = true
	closeConn(w.near, reset)
	if w.far != nil {
		closeConn(w.far, reset)
	}
	w.changed.Broadcast()
}

func closeConn(c net.Conn, reset bool) {
	if t, ok := c.(*net.TCPConn); ok && reset {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
