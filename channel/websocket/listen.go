package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
)

const (
	// firstRead is what a message's buffer begins with; most are smaller.
	firstRead = 512
	// chunk bounds one read of what is read away.
	chunk = 16 << 10
)

// listen hears until the connection ends. It never writes; the library answers
// the server's pings within the read.
func (s *session) listen() error {
	for {
		f, err := s.next()
		if err != nil {
			return err
		}
		if s.leaving.Load() {
			s.answered(f)
			continue // not acknowledged, so it comes again
		}
		if err := s.hear(f); err != nil && !s.leaving.Load() {
			return err
		}
	}
}

// next reads one message. Of one that is larger than max_size it keeps the
// beginning and reads the rest away.
func (s *session) next() (frame, error) {
	// Not Run's context: its end leaves time to say goodbye. What ends a read is the
	// connection's end.
	kind, r, err := s.conn.Reader(context.Background())
	if err != nil {
		return frame{}, err
	}
	var rest []byte // reused for what is read away
	data, size := make([]byte, 0, firstRead), 0
	for {
		into := rest
		if size < s.plan.maxSize {
			data = grow(data, s.plan.maxSize)
			into = data[len(data):min(cap(data), s.plan.maxSize)]
		} else if rest == nil {
			rest = make([]byte, chunk)
			into = rest
		}
		n, err := r.Read(into)
		if size < s.plan.maxSize {
			data = data[:len(data)+n]
		}
		size += n
		if errors.Is(err, io.EOF) {
			return newFrame(data, kind == websocket.MessageBinary, size), nil
		}
		if err != nil {
			return frame{}, err
		}
	}
}

// grow makes room for at least one byte, doubling up to limit.
func grow(b []byte, limit int) []byte {
	if len(b) < cap(b) {
		return b
	}
	bigger := make([]byte, len(b), min(max(2*cap(b), firstRead), max(limit, 1)))
	copy(bigger, b)
	return bigger
}

// hear decides what a message is. An error ends the connection.
func (s *session) hear(f frame) error {
	p := s.plan
	switch {
	case f.binary && p.refuseBinary:
		s.fail(channel.Rejected("binary", fmt.Errorf(`the server sent a binary message; set binary = "accept" or check subprotocol`)))
		return nil
	case f.size > len(f.data):
		s.readyByDefault()
		return s.tooLarge(f)
	case !f.binary:
		if s.control(f) {
			return nil
		}
	}
	s.readyByDefault()
	e, v := p.event(f, s.makeID)
	if p.interaction.when.holds(f.data, f.json) {
		return s.push(&e, v, f.size, s.interact(e, v))
	}
	return s.push(&e, v, f.size, nil)
}

// control takes what is about the connection; false: the frame is an event.
func (s *session) control(f frame) bool {
	p := s.plan
	if anyHolds(p.authErrorWhen, f.data, f.json) {
		s.fail(channel.Rejected("auth", fmt.Errorf("the server refused the credentials: %s; check login and secrets", p.words.Show(string(f.data)))))
		return true
	}
	asks, isReady := p.subscribeWhen.holds(f.data, f.json), p.readyWhen.holds(f.data, f.json)
	if asks && !s.mayAsk.Swap(true) {
		s.wake()
	}
	if isReady {
		s.ready()
	}
	s.readyByDefault()
	return asks || isReady || s.answered(f) || anyHolds(p.ignoreWhen, f.data, f.json)
}

// tooLarge drops an event and acknowledges it: the platform would send it for ever.
func (s *session) tooLarge(f frame) error {
	s.link.Notice("event_too_large", fmt.Sprintf("an event of %d bytes was dropped; max_size is %d", f.size, s.plan.maxSize))
	return s.push(nil, s.plan.values(f), 0, nil)
}

// push hands an event to the inbox, and waits while too much waits for the disk. stored
// is called once it is on it; nil = nobody wants to know.
func (s *session) push(e *channel.Event, v jsonframe.Values, size int, stored func()) error {
	s.waiting.Store(true)
	defer func() {
		s.last.Store(int64(time.Since(s.start))) // nobody listened: silence begins now
		s.waiting.Store(false)
	}()
	if !s.pending.Take(size, s.inbox.Done()) {
		return s.inbox.Close()
	}
	var ack []byte
	if s.plan.ack != nil {
		ack, _ = s.plan.ack.Render(v) // without a value there is nothing to acknowledge
	}
	return s.inbox.Push(e, s.plan.cursor(v.Cursor), func() error {
		s.pending.Give(size)
		if stored != nil {
			stored()
		}
		if ack != nil {
			// A connection that takes no acknowledgement ends by itself; what else was
			// heard is still worth keeping, so the inbox goes on.
			_ = s.write(context.Background(), ack)
		}
		return nil
	})
}
