package mqtt

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"leasehold/channel"
)

// errEnded is that the reader has heard enough: s.said or s.failure says why.
var errEnded = errors.New("the connection has ended")

// listen hears until the connection ends. It never writes.
func (s *session) listen() error {
	for {
		f, err := s.wire.next()
		if err != nil {
			return err
		}
		if err := s.hear(f); err != nil {
			if errors.Is(err, errEnded) {
				s.wire.hang()
				return nil
			}
			return err
		}
	}
}

// hear handles a packet. An error ends the connection.
func (s *session) hear(f frame) error {
	if s.greeted.Load() == 0 && f.kind != connack {
		s.drop(f)
		return violation("a packet of type %d before the CONNACK", f.kind)
	}
	if f.kind == publish && (s.leaving.Load() || f.size > len(f.body)) {
		defer s.wire.free(f)
		if s.leaving.Load() {
			return nil // not acknowledged, so it comes again
		}
		return s.tooLarge(f)
	}
	p, err := s.plan.codec.decode(f)
	if err != nil {
		s.drop(f)
		return err
	}
	switch p.kind {
	case connack:
		return s.greet(p)
	case publish:
		return s.take(f, p)
	case pubrel:
		return s.push(nil, nil, func() error { return s.acknowledge(pubcomp, p.id) })
	case suback:
		return s.subscribed(p)
	case unsuback:
		return s.unsubscribed(p)
	case puback:
		s.out.answer(p)
	case pingresp:
		if acked, ok := s.proof.answered(); ok {
			s.moved = s.pos.Heard.prove(acked) || s.moved
		}
	case disconnect:
		s.said = s.dismissed(p)
		return errEnded
	case pubrec, pubcomp: // of a QoS that we never send with
		return violation("a packet of type %d for nothing that we sent", p.kind)
	}
	return nil
}

// drop gives back what a frame holds that nobody will handle.
func (s *session) drop(f frame) {
	if f.kind == publish {
		s.wire.free(f)
	}
}

// greet hears the CONNACK, and asks for what we want to hear.
func (s *session) greet(p packet) error {
	if s.greeted.Load() != 0 {
		return violation("a second CONNACK")
	}
	if p.code != 0 {
		s.said = s.refused(p)
		return errEnded
	}
	if !p.present {
		if s.pos.Known && s.plan.expiry > 0 {
			s.link.Notice("session_lost", "the broker has forgotten our session: what was published while we were away is lost, and retained messages come again")
		}
		if err := s.forget(); err != nil {
			s.said = err
			return errEnded
		}
	}
	s.pos.Known = s.plan.expiry > 0
	if agreed := time.Duration(p.limits.keepAlive) * time.Second; agreed > 0 {
		s.every.Store(min(int64(agreed), s.every.Load()))
	}
	s.out.limit(p.limits)
	s.greeted.Store(max(1, int64(time.Since(s.start))))
	return s.ask()
}

// forget empties what is remembered of a session that the broker has lost. It is
// stored before the broker has anything to send: what it then sends would be taken
// for a repetition of the old session's, if we ended before we stored it.
func (s *session) forget() error {
	had := len(s.pos.Heard.all) > 0
	s.pos.forget()
	if !had {
		return nil
	}
	if err := s.link.Accept(s.wire.open, channel.Batch{Cursor: s.pos.encode(), Urgent: true}); err != nil {
		return fmt.Errorf("store that the session is lost: %w", err)
	}
	return nil
}

// take handles a message: it is stored, and then acknowledged.
func (s *session) take(f frame, p packet) error {
	id := s.plan.identify(p.message)
	counts := false
	switch {
	case id != "":
	case p.qos == 0:
		s.weak++
		id = s.pos.run + ":0:" + strconv.FormatUint(s.weak, 10)
	default:
		id, counts = s.pos.identify(p.id, p.message), true
	}
	return s.push(p.event(id), s.pos.encode(), func() error {
		s.wire.free(f)
		err := s.confirm(p.qos, p.id)
		if counts {
			s.proof.acked(s)
		}
		return err
	})
}

// push hands an event to the inbox. Nobody listens while it waits for the disk.
func (s *session) push(e *channel.Event, cursor []byte, ack func() error) error {
	s.moved = s.moved && cursor == nil
	s.wire.pause(true)
	defer s.wire.pause(false)
	return s.inbox.Push(e, cursor, ack)
}

// confirm acknowledges a message of QoS 1, and of 2 that it was received.
func (s *session) confirm(qos byte, id uint16) error {
	switch qos {
	case 1:
		return s.acknowledge(puback, id)
	case 2:
		return s.acknowledge(pubrec, id)
	}
	return nil
}

// acknowledge never ends the inbox: a connection that takes no acknowledgement ends
// by itself, and what else was heard is still worth keeping.
func (s *session) acknowledge(k kind, id uint16) error {
	if !s.fenced.Load() {
		_ = s.send(acknowledgement(k, id))
	}
	return nil
}

// tooLarge drops a message and acknowledges it: the broker would send it for ever.
func (s *session) tooLarge(f frame) error {
	qos, id, topic, err := head(f)
	if err != nil {
		return err
	}
	s.link.Notice("message_too_large", fmt.Sprintf("a message of %d bytes on %q was dropped; the most is %d", f.size, s.plan.words.Show(topic), frameMax))
	return s.push(nil, nil, func() error { return s.confirm(qos, id) })
}

// head reads what a PUBLISH begins with, in either version.
func head(f frame) (qos byte, id uint16, topic string, err error) {
	b := f.body
	qos = f.flags >> 1 & 3
	if len(b) < 2 {
		return 0, 0, "", violation("a PUBLISH without a topic")
	}
	n := int(b[0])<<8 | int(b[1])
	if b = b[2:]; len(b) < n+2 {
		return 0, 0, "", violation("a PUBLISH without a topic")
	}
	topic, b = string(b[:n]), b[n:]
	if qos > 0 {
		id = uint16(b[0])<<8 | uint16(b[1])
	}
	return qos, id, topic, nil
}
