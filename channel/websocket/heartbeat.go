package websocket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"leasehold/channel"
)

// readyTimeout bounds the wait for the platform to say that we are connected.
const readyTimeout = 30 * time.Second

// heartbeat keeps a session's time on one timer: when to ping, when silence has
// lasted too long, when the platform should have said that we are connected.
type heartbeat struct {
	s      *session
	timer  *time.Timer
	ping   time.Duration // since the session's start, when the next one is due
	first  bool
	flying atomic.Bool // the platform's own ping is on its way
}

// newHeartbeat makes one whose first ping is due at once: its answer is what says
// that we are connected where nothing else does.
func newHeartbeat(s *session) *heartbeat {
	return &heartbeat{s: s, timer: time.NewTimer(0), first: true}
}

func (h *heartbeat) stop() { h.timer.Stop() }

func (h *heartbeat) due() <-chan time.Time { return h.timer.C }

// tick does what is due and sets the timer for what is due next.
func (h *heartbeat) tick(ctx context.Context) {
	s, p := h.s, h.s.plan
	now := time.Since(s.start)
	if wait, said := h.readyWithin(), s.readyAt.Load() != 0; !said && now >= wait {
		s.fail(channel.Failed("no_ready", fmt.Errorf("the server did not say within %s that we are connected; check login and ready_when", wait)))
		return
	}
	silent := s.lastHeard() + p.deadAfter
	if s.waiting.Load() {
		silent = now + p.deadAfter // nobody listens: silence means nothing
	}
	if now >= silent {
		s.fail(channel.Failed("silent", fmt.Errorf("nothing was heard for %s, pongs included; the connection is dead", p.deadAfter)))
		return
	}
	next := silent
	if p.pings() {
		if now >= h.ping {
			h.beat(ctx)
			h.ping = now + h.pause()
		}
		next = min(next, h.ping)
	}
	if s.readyAt.Load() == 0 {
		next = min(next, h.readyWithin())
	}
	h.timer.Reset(next - now)
}

// readyWithin is the wait for a sign that we are connected. Where neither ping can
// provoke one it is the longest silence that the server may keep.
func (h *heartbeat) readyWithin() time.Duration {
	p := h.s.plan
	if p.readyWhen == nil && !p.pings() {
		return max(readyTimeout, p.deadAfter)
	}
	return readyTimeout
}

// pause is the time to the next ping. It differs between connections, and the
// first one by the whole interval: a thousand that were opened together must not
// ping together.
func (h *heartbeat) pause() time.Duration {
	every := h.s.plan.pingEvery
	if h.first {
		h.first = false
		return rand.N(every)
	}
	return every - every/10 + rand.N(every/5)
}

// beat sends the pings that are configured. A pong has as long as until the next
// ping to be waited for; a later one counts as a sign of life all the same.
func (h *heartbeat) beat(ctx context.Context) {
	s, p := h.s, h.s.plan
	// Before the platform has said that we are connected its own ping may be a
	// mistake, unless it is all that can make it speak.
	own := p.ping != nil && (s.readyAt.Load() != 0 || p.readyWhen == nil && !p.wsPing)
	if own && h.flying.CompareAndSwap(false, true) {
		s.beats.Add(1)
		s.link.Go(func() {
			defer s.beats.Done()
			defer h.flying.Store(false)
			_ = s.send(ctx, p.ping) // the reader hears why not
		})
	}
	if p.wsPing && !s.fenced.Load() {
		s.ping(min(writeTimeout, p.pingEvery))
	}
}

func (s *session) lastHeard() time.Duration { return time.Duration(s.last.Load()) }
