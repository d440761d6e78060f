package channeltest

import "time"

// over reports whether no end has the connection any more.
func (p *pair) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[dialler].closed && p.ends[acceptor].closed
}

// wake makes whoever waits look again. It takes the lock so that nobody is missed
// between looking and waiting.
func (p *pair) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

func (p *pair) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// release lets what was held arrive. What arrives where nobody is any more is
// answered by a reset.
func (p *pair) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
	for side, end := range p.ends {
		if end.closed && p.flows[side].size > 0 {
			p.flows[side].drop()
			p.flows[1-side].reset()
		}
	}
	p.changed.Broadcast()
}

func (p *pair) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for side := range p.ends {
		p.flows[side].drop()
		p.ends[side].cut = true
	}
	p.changed.Broadcast()
}

func (p *pair) halfClose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flows[dialler].end(p.arrival())
	p.flows[dialler].void = true
	p.changed.Broadcast()
}

func (p *pair) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// arrival is when what is written now arrives; zero means at once.
func (p *pair) arrival() time.Time {
	if p.delay == 0 {
		return time.Time{}
	}
	return time.Now().Add(p.delay)
}

func (f *flow) put(b []byte, at time.Time) {
	if len(b) == 0 {
		return
	}
	f.size += len(b)
	if last := len(f.parts) - 1; last >= 0 && f.parts[last].at.Equal(at) {
		f.parts[last].data = append(f.parts[last].data, b...)
		return
	}
	f.parts = append(f.parts, part{at: at, data: append([]byte(nil), b...)})
}

func (f *flow) take(n int) {
	f.size -= n
	if f.parts[0].data = f.parts[0].data[n:]; len(f.parts[0].data) == 0 {
		if f.parts = f.parts[1:]; len(f.parts) == 0 {
			f.parts = nil // nothing is kept at rest
		}
	}
}

func (f *flow) end(at time.Time) {
	if !f.fin {
		f.fin, f.finAt = true, at
	}
}

func (f *flow) reset() {
	f.drop()
	f.rst = true
}

func (f *flow) drop() { f.parts, f.size = nil, 0 }
