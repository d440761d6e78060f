package sse

import (
	"fmt"
	"strconv"
	"time"

	"leasehold/channel"
)

// listen hears until the stream ends.
func (s *session) listen() error {
	for {
		b, err := s.parser.next()
		if err != nil {
			return err
		}
		if err := s.hear(b); err != nil {
			return err
		}
	}
}

// hear decides what a block is. An error ends the connection.
func (s *session) hear(b block) error {
	var cursor []byte
	if b.hasID {
		cursor = s.plan.cursor(b.id)
	}
	switch {
	case !b.hasData, !s.plan.takes(b.name):
		return s.push(nil, cursor, 0)
	case b.size > s.plan.maxSize:
		s.link.Notice("event_too_large", fmt.Sprintf("an event of %d bytes was dropped; max_size is %d", b.size, s.plan.maxSize))
		return s.push(nil, cursor, 0)
	}
	e := s.plan.event(b, s.makeID)
	return s.push(&e, cursor, b.size)
}

// push hands an event and the position behind it to the inbox, and waits while too
// much waits for the disk.
func (s *session) push(e *channel.Event, cursor []byte, size int) error {
	if e == nil && cursor == nil {
		return nil
	}
	s.waiting.Store(true)
	defer func() {
		s.last.Store(int64(time.Since(s.start))) // nobody listened: silence begins now
		s.waiting.Store(false)
	}()
	if !s.pending.Take(size, s.inbox.Done()) {
		return s.inbox.Close()
	}
	return s.inbox.Push(e, cursor, func() error {
		s.pending.Give(size)
		return nil
	})
}

func (s *session) makeID() string {
	s.counter++
	return s.nonce + ":" + strconv.FormatInt(s.counter, 10)
}
