package mqtt

import (
	"fmt"
	"math/rand/v2"
	"time"

	"leasehold/channel"
)

const (
	// answerTimeout bounds each step of the way to a connection that hears: the
	// CONNACK and the last SUBACK.
	answerTimeout = 15 * time.Second
	// answerShare shortens it to so many times keep_alive, for who wants to know
	// soon.
	answerShare = 3
)

// heartbeat keeps a session's time on one timer: when to ping, when silence has
// lasted too long, when the broker should have answered. Its times are since the
// session's start.
type heartbeat struct {
	s      *session
	timer  *time.Timer
	answer time.Duration // how long the broker may take for one
	pinged time.Duration
	share  float64 // of the keep-alive, that a ping waits for
}

func newHeartbeat(s *session) *heartbeat {
	h := &heartbeat{s: s, answer: min(answerTimeout, answerShare*s.plan.keepAlive), pinged: time.Since(s.start)}
	h.vary()
	h.timer = time.NewTimer(h.next(time.Since(s.start)))
	return h
}

func (h *heartbeat) stop() { h.timer.Stop() }

func (h *heartbeat) due() <-chan time.Time { return h.timer.C }

// vary chooses when to ping next. It differs between connections: a thousand that
// were opened together must not ping together.
func (h *heartbeat) vary() { h.share = 0.75 + rand.Float64()/5 } //nolint:gosec // no secret

// reset sets the timer anew, because something has changed.
func (h *heartbeat) reset() { h.timer.Reset(h.next(time.Since(h.s.start))) }

// tick does what is due and sets the timer for what is due next.
func (h *heartbeat) tick() error {
	s := h.s
	now := time.Since(s.start)
	switch greeted := time.Duration(s.greeted.Load()); {
	case greeted == 0 && now >= h.answer:
		s.fail(channel.Failed("no_connack", fmt.Errorf("the broker did not answer within %s; check that it speaks MQTT at this address", h.answer)))
		return nil
	case greeted > 0 && !s.ready.Load() && now >= greeted+h.answer:
		s.fail(channel.Failed("no_suback", fmt.Errorf("the broker did not answer our subscription within %s", h.answer)))
		return nil
	case greeted > 0 && now >= h.silent(now):
		s.fail(channel.Failed("silent", fmt.Errorf("nothing was heard for %s, in spite of a ping; the connection is dead", 2*h.every())))
		return nil
	case greeted > 0 && now >= h.ping():
		h.pinged = now
		h.vary()
		if err := s.proof.ask(s); err != nil {
			return err
		}
	}
	h.reset()
	return nil
}

// next is how long after now something is due.
func (h *heartbeat) next(now time.Duration) time.Duration {
	greeted := time.Duration(h.s.greeted.Load())
	if greeted == 0 {
		return h.answer - now
	}
	at := min(h.ping(), h.silent(now))
	if !h.s.ready.Load() {
		at = min(at, greeted+h.answer)
	}
	return at - now
}

// every is the keep-alive that holds.
func (h *heartbeat) every() time.Duration { return time.Duration(h.s.every.Load()) }

// silent is when silence has lasted too long: twice the keep-alive after the last
// sign of life, of which the second half is for the answer to a ping. While nobody
// listens silence means nothing.
func (h *heartbeat) silent(now time.Duration) time.Duration {
	if h.s.wire.waiting.Load() {
		return now + 2*h.every()
	}
	return time.Duration(h.s.last.Load()) + 2*h.every()
}

// ping is when to ping: before either side has been silent for the keep-alive, and
// once per keep-alive at most.
func (h *heartbeat) ping() time.Duration {
	heard := time.Duration(h.s.last.Load())
	sent := h.s.wire.sent.Load().Sub(h.s.start)
	wait := time.Duration(h.share * float64(h.every()))
	return max(min(heard, sent), h.pinged) + wait
}
