package outbound

import (
	"context"

	"leasehold/channel"
)

// looking is how much of the store a queue is to read again.
type looking int

const (
	lookNot looking = iota
	lookNew         // what was posted behind what it knows
	lookAll         // everything
)

// hold is one grant. At rest it is a few words. All of it but the first four is
// guarded by the mailer's mu.
type hold struct {
	m        *Mailer
	term     channel.Term
	wake     chan struct{} // tells the queue that something below has changed
	throttle throttle      // has a lock of its own

	sender channel.Sender // nil: there is no connection, or it cannot speak
	run    int64          // of the term that lent it
	look   looking
	busy   bool // a queue runs
	held   int  // conversations that wait for a limit

	leaving bool          // nothing new is sent
	idle    chan struct{} // closed when leaving and not busy
	stop    []context.CancelFunc
	kill    []context.CancelFunc
}

// contexts are those of a queue that is about to run: the first ends when its sends
// are broken off, the second when nothing may be written any more.
func (h *hold) contexts(ctx context.Context) (calls, writes context.Context) {
	calls, stop := context.WithCancel(ctx)
	writes, kill := context.WithCancel(context.WithoutCancel(ctx))
	h.stop, h.kill = []context.CancelFunc{stop}, []context.CancelFunc{kill}
	return calls, writes
}

// leave lets nothing new begin.
func (h *hold) leave() {
	if h.leaving {
		return
	}
	h.leaving, h.idle, h.sender = true, make(chan struct{}), nil
	if !h.busy {
		close(h.idle)
	}
	poke(h.wake)
}

// breakOff ends the sends that run.
func (h *hold) breakOff() {
	for _, stop := range h.stop {
		stop()
	}
}

// end makes every further write impossible, and forgets the hold.
func (h *hold) end() {
	h.breakOff()
	for _, kill := range h.kill {
		kill()
	}
	if h.m.holds[h.term.Installation] == h {
		delete(h.m.holds, h.term.Installation)
	}
}

// rest notes that the queue has ended.
func (h *hold) rest() {
	h.breakOff()
	for _, kill := range h.kill {
		kill()
	}
	h.busy, h.held, h.stop, h.kill = false, 0, nil, nil
	if h.leaving {
		close(h.idle)
	}
}
