package channeltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// backlog is how many connections a listener holds that nobody has accepted.
const backlog = 1024

// Net is a network in memory. Its listeners have any name, such as
// "platform.test:443"; what dials such a name reaches it. Connections behave
// like TCP where a protocol can tell: 64 kB of buffer in each direction, so a
// mute peer is not noticed by a write; deadlines; a reset where the kernel would
// send one (see Conn.Close). It is safe for concurrent use.
type Net struct {
	mu        sync.Mutex // guards what follows; taken before a pair's
	listeners map[string]*listener
	pairs     []*pair
	changed   chan struct{} // closed and replaced when a fault changes
	ports     int
	dials     int
	paused    bool
	refused   bool
	blackhole bool
	latency   time.Duration
}

var _ Faults = (*Net)(nil)

// NewNet makes a network without faults.
func NewNet() *Net {
	return &Net{listeners: map[string]*listener{}, changed: make(chan struct{}), ports: 49152}
}

// Listen opens a listener. A port of 0, or none, is replaced by a free one.
func (n *Net) Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, "0"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		n.ports++
		port = strconv.Itoa(n.ports)
	}
	name := net.JoinHostPort(host, port)
	if _, ok := n.listeners[name]; ok {
		return nil, opError("listen", addr(name), os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	l := &listener{net: n, name: addr(name), queue: make(chan *Conn, backlog), done: make(chan struct{})}
	n.listeners[name] = l
	return l, nil
}

// DialContext connects to a listener of the network by its name.
func (n *Net) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	if n.latency > 0 {
		wait := 2 * n.latency // there and back, for the handshake
		n.mu.Unlock()
		if err := n.wait(ctx, nil, wait); err != nil {
			return nil, opError("dial", addr(address), err)
		}
		n.mu.Lock()
	}
	for n.paused || n.blackhole {
		changed := n.changed
		n.mu.Unlock()
		if err := n.wait(ctx, changed, 0); err != nil {
			return nil, opError("dial", addr(address), err)
		}
		n.mu.Lock()
	}
	defer n.mu.Unlock()
	l, ok := n.listeners[address]
	if n.refused || !ok {
		return nil, opError("dial", addr(address), os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	if err := ctx.Err(); err != nil {
		return nil, opError("dial", addr(address), err)
	}
	n.ports++
	near, far := newPair(n, addr(fmt.Sprintf("client:%d", n.ports)), addr(address))
	select {
	case l.queue <- far:
		n.pairs = append(n.pairs, near.pair)
		return near, nil
	default:
		return nil, opError("dial", addr(address), os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
}

// wait waits for a change of the faults, or for d, or for ctx.
func (n *Net) wait(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
		return nil
	case <-due:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pause is Faults.Pause. A dial gets no answer meanwhile.
func (n *Net) Pause() {
	n.change(func() { n.paused = true })
	n.each((*pair).hold)
}

// Resume is Faults.Resume.
func (n *Net) Resume() {
	n.change(func() { n.paused = false })
	n.each((*pair).release)
}

// Cut is Faults.Cut.
func (n *Net) Cut() { n.each((*pair).cut) }

// HalfClose is Faults.HalfClose.
func (n *Net) HalfClose() { n.each((*pair).halfClose) }

// BlackholeExisting is Faults.BlackholeExisting.
func (n *Net) BlackholeExisting() { n.each((*pair).hold) }

// Refuse is Faults.Refuse.
func (n *Net) Refuse(on bool) { n.change(func() { n.refused = on }) }

// Blackhole is Faults.Blackhole.
func (n *Net) Blackhole(on bool) { n.change(func() { n.blackhole = on }) }

// Latency is Faults.Latency.
func (n *Net) Latency(d time.Duration) {
	n.change(func() { n.latency = d })
	n.each(func(p *pair) { p.slow(d) })
}

// Dials is Faults.Dials.
func (n *Net) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// Live is Faults.Live.
func (n *Net) Live() int { return len(n.Conns()) }

// Conns are the diallers' ends of the connections that they have open, in the
// order in which they were dialled.
func (n *Net) Conns() []*Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var open []*Conn
	n.pairs = slices.DeleteFunc(n.pairs, (*pair).over)
	for _, p := range n.pairs {
		if near := p.ends[dialler]; near.open() {
			open = append(open, near)
		}
	}
	return open
}

func (n *Net) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Net) each(f func(*pair)) {
	n.mu.Lock()
	n.pairs = slices.DeleteFunc(n.pairs, (*pair).over)
	pairs := slices.Clone(n.pairs)
	n.mu.Unlock()
	for _, p := range pairs {
		f(p)
	}
}

// listener is a net.Listener of a Net.
type listener struct {
	net   *Net
	name  addr
	queue chan *Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, opError("accept", l.name, net.ErrClosed)
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, opError("accept", l.name, net.ErrClosed)
	}
}

// Close frees the name and resets what nobody accepted.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		err = nil
		l.net.mu.Lock()
		delete(l.net.listeners, string(l.name))
		close(l.done)
		l.net.mu.Unlock()
		for {
			select {
			case c := <-l.queue:
				c.pair.cut()
			default:
				return
			}
		}
	})
	return err
}

func (l *listener) Addr() net.Addr { return l.name }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

func opError(op string, a net.Addr, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: a, Err: err}
}
