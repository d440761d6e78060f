package channeltest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is what a direction holds before a write blocks: a mute peer must
// look like TCP's, which an unbuffered pipe does not.
const bufferSize = 64 << 10

const (
	dialler = iota
	acceptor
)

// pair is one connection: its two ends and the two flows between them.
type pair struct {
	mu      sync.Mutex // guards everything below, ends and flows included
	changed *sync.Cond
	ends    [2]*Conn
	flows   [2]flow // to the end of the same index
	held    bool    // nothing arrives at either end
	delay   time.Duration
}

// flow is what is on its way to one end.
type flow struct {
	parts []part
	size  int
	fin   bool      // the stream ends after parts
	finAt time.Time // when that arrives
	rst   bool      // a reset is on its way
	alarm time.Time // when its reader is woken next for what has not arrived
	void  bool      // whatever else is written is dropped
}

type part struct {
	at   time.Time // when it arrives
	data []byte
}

func newPair(n *Net, near, far addr) (*Conn, *Conn) {
	p := &pair{delay: n.latency}
	p.changed = sync.NewCond(&p.mu)
	p.ends[dialler] = &Conn{pair: p, side: dialler, local: near, remote: far}
	p.ends[acceptor] = &Conn{pair: p, side: acceptor, local: far, remote: near}
	return p.ends[dialler], p.ends[acceptor]
}

// Conn is one end of a connection of a Net.
type Conn struct {
	pair          *pair
	side          int
	local, remote addr

	// guarded by pair.mu
	closed  bool
	cut     bool // a reset has arrived
	abort   bool // SetLinger(0): Close resets
	read    deadline
	written deadline
}

var _ net.Conn = (*Conn)(nil)

// Read returns what has arrived. A reset drops what was not read.
func (c *Conn) Read(b []byte) (int, error) {
	p, in := c.pair, &c.pair.flows[c.side]
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, opError("read", c.remote, net.ErrClosed)
		case c.read.passed():
			return 0, opError("read", c.remote, os.ErrDeadlineExceeded)
		case c.hasReset():
			return 0, opError("read", c.remote, os.NewSyscallError("read", syscall.ECONNRESET))
		case len(b) == 0:
			return 0, nil
		case p.held:
		case len(in.parts) > 0 && c.arrived(in.parts[0].at):
			n := copy(b, in.parts[0].data)
			in.take(n)
			p.changed.Broadcast()
			return n, nil
		case len(in.parts) == 0 && in.fin && c.arrived(in.finAt):
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

// arrived reports whether at has come; if not, it sees to it that the reader is
// woken then, once.
func (c *Conn) arrived(at time.Time) bool {
	now, in := time.Now(), &c.pair.flows[c.side]
	if !at.After(now) {
		return true
	}
	if !in.alarm.After(now) || at.Before(in.alarm) {
		in.alarm = at
		time.AfterFunc(at.Sub(now), c.pair.wake)
	}
	return false
}

// hasReset takes note of a reset that has arrived.
func (c *Conn) hasReset() bool {
	if !c.pair.held && c.pair.flows[c.side].rst {
		c.cut = true
	}
	return c.cut
}

// Write blocks while the peer's buffer is full, and for nothing else.
func (c *Conn) Write(b []byte) (int, error) {
	p, out := c.pair, &c.pair.flows[1-c.side]
	p.mu.Lock()
	defer p.mu.Unlock()
	written := 0
	for {
		switch {
		case c.closed:
			return written, opError("write", c.remote, net.ErrClosed)
		case c.written.passed():
			return written, opError("write", c.remote, os.ErrDeadlineExceeded)
		case c.hasReset():
			return written, opError("write", c.remote, os.NewSyscallError("write", syscall.ECONNRESET))
		case out.fin && !out.void:
			return written, opError("write", c.remote, os.NewSyscallError("write", syscall.EPIPE))
		case out.void:
			return written + len(b), nil
		case !p.held && p.ends[1-c.side].closed:
			// Nobody is there: the bytes are lost and a reset comes back.
			p.flows[c.side].reset()
			p.changed.Broadcast()
			return written + len(b), nil
		}
		if room := min(bufferSize-out.size, len(b)); room > 0 || len(b) == 0 {
			out.put(b[:room], p.arrival())
			written, b = written+room, b[room:]
			p.changed.Broadcast()
			if len(b) == 0 {
				return written, nil
			}
		}
		p.changed.Wait()
	}
}

// Close ends the connection for this end. The peer hears a reset when linger was
// set to 0 or something that had come was not read, as the kernel does it, and
// else the end of the stream.
func (c *Conn) Close() error {
	p := c.pair
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.closed {
		return opError("close", c.remote, net.ErrClosed)
	}
	c.closed = true
	c.read.stop()
	c.written.stop()
	in, out := &p.flows[c.side], &p.flows[1-c.side]
	if c.abort || in.size > 0 {
		out.reset()
	} else {
		out.end(p.arrival())
	}
	in.drop()
	p.changed.Broadcast()
	return nil
}

// CloseWrite ends the stream to the peer; reading goes on.
func (c *Conn) CloseWrite() error {
	p := c.pair
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.closed {
		return opError("close", c.remote, net.ErrClosed)
	}
	p.flows[1-c.side].end(p.arrival())
	p.changed.Broadcast()
	return nil
}

// SetLinger is net.TCPConn's: with 0, Close resets the connection.
func (c *Conn) SetLinger(sec int) error {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	c.abort = sec == 0
	return nil
}

// LocalAddr names this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr names the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.read, &c.written) }

// SetReadDeadline ends reads at t, one that is waiting included.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.read) }

// SetWriteDeadline ends writes at t, one that is waiting included.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.written) }

func (c *Conn) setDeadlines(t time.Time, ds ...*deadline) error {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	if c.closed {
		return opError("set", c.remote, net.ErrClosed)
	}
	for _, d := range ds {
		d.set(t, c.pair.wake)
	}
	c.pair.changed.Broadcast()
	return nil
}

// Pause holds what this connection carries, in both directions.
func (c *Conn) Pause() { c.pair.hold() }

// Resume lets what was held arrive.
func (c *Conn) Resume() { c.pair.release() }

// Cut resets this connection at both ends.
func (c *Conn) Cut() { c.pair.cut() }

// HalfClose is Faults.HalfClose for this connection.
func (c *Conn) HalfClose() { c.pair.halfClose() }

func (c *Conn) open() bool {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	return !c.closed
}

// deadline is a point in time at which waiting ends.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(t time.Time, wake func()) {
	d.stop()
	d.at = t
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, wake)
	}
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
