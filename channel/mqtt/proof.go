package mqtt

import "sync"

// proof keeps count of which acknowledgements the broker has taken: those that were
// written before a ping that it has answered.
type proof struct {
	mu    sync.Mutex // guards what follows
	done  uint64     // acknowledgements written
	asked uint64     // of them, before the last ping
	marks []uint64   // the same of each ping that waits for its answer
}

// ask sends a ping.
func (p *proof) ask(s *session) error {
	p.mu.Lock()
	p.asked = p.done
	p.marks = append(p.marks, p.done)
	p.mu.Unlock()
	return s.send(ping())
}

// acked counts an acknowledgement that was written, and asks from time to time.
func (p *proof) acked(s *session) {
	p.mu.Lock()
	p.done++
	due := p.done-p.asked >= proofEvery && len(p.marks) == 0
	p.mu.Unlock()
	if due && !s.fenced.Load() {
		_ = p.ask(s) // a connection that takes no ping ends by itself
	}
}

// answered hears a PINGRESP; false: we did not ask.
func (p *proof) answered() (acked uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) == 0 {
		return 0, false
	}
	acked = p.marks[0]
	p.marks = p.marks[1:]
	return acked, true
}
