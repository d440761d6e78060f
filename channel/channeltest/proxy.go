package channeltest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Proxy passes TCP connections on to a target and breaks them. It needs no
// privilege: everything happens over loopback. Its faults are those of Faults,
// with one difference: a blackholed dial is accepted and then mute, because a
// listener cannot leave a SYN unanswered. It is safe for concurrent use.
type Proxy struct {
	target string
	addr   string
	ctx    context.Context // the proxy's own life, not a caller's: it ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex // guards what follows
	ln        net.Listener
	wires     []*wire
	dials     int
	paused    ways
	blackhole bool
	delay     time.Duration
}

var _ Faults = (*Proxy)(nil)

// NewProxy listens on a free port of loopback for target. Close it.
func NewProxy(ctx context.Context, target string) (*Proxy, error) {
	p := &Proxy{target: target, addr: "127.0.0.1:0"}
	p.ctx, p.cancel = context.WithCancel(ctx)
	if err := p.listen(); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// Addr is where the proxy listens; it stays the same for its life.
func (p *Proxy) Addr() string { return p.addr }

// Close resets every connection and waits until nothing of the proxy runs.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	if p.ln != nil {
		_ = p.ln.Close()
	}
	p.mu.Unlock()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) listen() error {
	var lc net.ListenConfig
	ln, err := lc.Listen(p.ctx, "tcp", p.addr)
	if err != nil {
		return fmt.Errorf("listen for the chaos proxy: %w", err)
	}
	p.ln, p.addr = ln, ln.Addr().String()
	p.wg.Go(func() { p.accept(ln) })
	return nil
}

func (p *Proxy) accept(ln net.Listener) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(near) })
	}
}

// serve carries one connection until both of its streams have ended.
func (p *Proxy) serve(near net.Conn) {
	w := &wire{near: near}
	w.changed = sync.NewCond(&w.mu)
	defer w.close()
	p.mu.Lock()
	p.dials++
	w.held = p.paused
	if p.blackhole {
		w.held = bothWays
	}
	w.delay = p.delay
	p.wires = append(p.wires, w)
	p.mu.Unlock()
	defer p.forget(w)
	if p.ctx.Err() != nil || !w.open() {
		return
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	far, err := d.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		w.cut()
		return
	}
	if !w.attach(far) {
		return
	}
	var streams sync.WaitGroup
	streams.Go(func() { w.pump(p.ctx, far, near, false) })
	streams.Go(func() { w.pump(p.ctx, near, far, true) })
	streams.Wait()
}

func (p *Proxy) forget(w *wire) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wires = slices.DeleteFunc(p.wires, func(x *wire) bool { return x == w })
}

// Pause is Faults.Pause.
func (p *Proxy) Pause() { p.pause(bothWays) }

// PauseAnswers is Pause in one direction: what the dialler says arrives, what it is
// answered does not.
func (p *Proxy) PauseAnswers() { p.pause(ways{toNear: true}) }

// PauseRequests is Pause in the other direction.
func (p *Proxy) PauseRequests() { p.pause(ways{toFar: true}) }

func (p *Proxy) pause(f ways) {
	p.set(func() { p.paused = p.paused.with(f) })
	p.each(func(w *wire) { w.hold(f) })
}

// Resume is Faults.Resume.
func (p *Proxy) Resume() {
	p.set(func() { p.paused = ways{} })
	p.each((*wire).release)
}

// Cut is Faults.Cut.
func (p *Proxy) Cut() { p.each((*wire).cut) }

// HalfClose is Faults.HalfClose.
func (p *Proxy) HalfClose() { p.each((*wire).halfClose) }

// BlackholeExisting is Faults.BlackholeExisting.
func (p *Proxy) BlackholeExisting() { p.each(func(w *wire) { w.hold(bothWays) }) }

// Blackhole is Faults.Blackhole: dials succeed and stay mute.
func (p *Proxy) Blackhole(on bool) { p.set(func() { p.blackhole = on }) }

// Latency is Faults.Latency: each chunk of at most 32 kB waits so long.
func (p *Proxy) Latency(d time.Duration) {
	p.set(func() { p.delay = d })
	p.each(func(w *wire) { w.slow(d) })
}

// Refuse is Faults.Refuse: the port is closed meanwhile.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.ln != nil:
		_ = p.ln.Close()
		p.ln = nil
	case !on && p.ln == nil && p.ctx.Err() == nil:
		if err := p.listen(); err != nil {
			panic(err) // the port was ours a moment ago; no test can go on without it
		}
	}
}

// Dials counts the connections accepted so far; refused ones never reach us.
func (p *Proxy) Dials() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

// Live counts the connections that the proxy carries.
func (p *Proxy) Live() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.wires)
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *Proxy) each(f func(*wire)) {
	p.mu.Lock()
	wires := slices.Clone(p.wires)
	p.mu.Unlock()
	for _, w := range wires {
		f(w)
	}
}
