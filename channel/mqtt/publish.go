package mqtt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"leasehold/channel"
)

const (
	// publishTimeout bounds a publication, the wait for its turn included.
	publishTimeout = 15 * time.Second
	// outMax is how many publications may be unacknowledged, where the broker does
	// not say.
	outMax = 100
	// firstID is the lowest packet id of ours, and each connection begins at random
	// above it. Both sides count apart, but there is a broker that refuses a packet
	// whose id one of its own has, and it counts from one.
	firstID = 1 << 15
	// overQuota is how long to wait when the broker says that it has taken too much.
	overQuota = 30 * time.Second
)

// publication is what a message asks to be published.
func publication(m channel.Message) (topic string, payload []byte, err error) {
	if m.Op != "send" {
		return "", nil, fmt.Errorf("mqtt can send and nothing else, not %q", m.Op)
	}
	topic = m.Conversation
	if err := checkText(topic); err != nil {
		return "", nil, fmt.Errorf("conversation, the topic: %w", err)
	}
	if strings.ContainsAny(topic, "+#") {
		return "", nil, fmt.Errorf("conversation: %q holds a + or a #; name one topic to publish to", topic)
	}
	payload = []byte(m.Text)
	if len(m.Native) > 0 {
		payload = m.Native
	}
	if len(payload) == 0 {
		return "", nil, errors.New("text and native are empty; there is nothing to publish")
	}
	return topic, payload, nil
}

// outbox are the publications on their way.
type outbox struct {
	mu      sync.Mutex // guards what follows
	limits  limits
	waiting map[uint16]chan packet // by packet id; each holds one
	next    uint16
	turn    chan struct{} // closed and replaced when one has been answered
	over    bool
}

func newOutbox() *outbox {
	return &outbox{waiting: map[uint16]chan packet{}, next: firstID + uint16(rand.IntN(firstID)), turn: make(chan struct{})} //nolint:gosec // no secret
}

// id gives a packet id to what is no publication.
func (o *outbox) id() uint16 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.free()
}

// limit sets what the broker asks of us.
func (o *outbox) limit(l limits) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l.inFlight == 0 || l.inFlight > outMax {
		l.inFlight = outMax
	}
	o.limits = l
}

var errOver = errors.New("the connection has ended")

// enter waits for a turn and returns a packet id and where its answer will come.
func (o *outbox) enter(ctx context.Context) (uint16, <-chan packet, error) {
	for {
		o.mu.Lock()
		turn := o.turn
		switch {
		case o.over:
			o.mu.Unlock()
			return 0, nil, errOver
		case len(o.waiting) < int(o.limits.inFlight):
			id := o.free()
			answer := make(chan packet, 1)
			o.waiting[id] = answer
			o.mu.Unlock()
			return id, answer, nil
		}
		o.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return 0, nil, fmt.Errorf("wait for a turn: %w", ctx.Err())
		}
	}
}

// free finds a packet id that is not in use. There are many more than may be.
func (o *outbox) free() uint16 {
	for {
		id := o.next
		if o.next++; o.next == 0 {
			o.next = firstID
		}
		if o.waiting[id] == nil {
			return id
		}
	}
}

// leave forgets a publication that was not written.
func (o *outbox) leave(id uint16) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
	o.proceed()
}

// answer hands a PUBACK over. One that nobody waits for any more frees its turn.
func (o *outbox) answer(p packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer := o.waiting[p.id]
	if answer == nil {
		return
	}
	delete(o.waiting, p.id)
	answer <- p
	o.proceed()
}

func (o *outbox) proceed() {
	close(o.turn)
	o.turn = make(chan struct{})
}

// close ends every wait; what was not answered will not be.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	for id, answer := range o.waiting {
		delete(o.waiting, id)
		close(answer)
	}
	o.proceed()
}

// publish sends a message and waits until the broker has taken it.
func (s *session) publish(ctx context.Context, topic string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	id, answer, err := s.out.enter(ctx)
	if err != nil {
		return channel.NotSent(err)
	}
	b, err := s.plan.codec.publish(id, topic, payload)
	if err == nil {
		err = s.out.fits(b)
	}
	if err != nil {
		s.out.leave(id)
		return channel.Refused(err)
	}
	if err := s.send(b); err != nil {
		s.out.leave(id)
		return channel.NotSent(err)
	}
	select {
	case p, ok := <-answer:
		if !ok {
			return errors.New("the connection ended before the broker acknowledged the message")
		}
		return s.taken(p)
	case <-ctx.Done():
		return fmt.Errorf("the broker has not acknowledged the message: %w", ctx.Err())
	}
}

// fits checks a packet against the broker's limits.
func (o *outbox) fits(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.limits.qos < 1:
		return errors.New("the broker takes no QoS 1, so it cannot tell whether it has taken a message")
	case o.limits.size > 0 && len(b) > int(o.limits.size):
		return fmt.Errorf("the message makes %d bytes and the broker takes %d at most", len(b), o.limits.size)
	}
	return nil
}

// taken reads a PUBACK.
func (s *session) taken(p packet) error {
	if p.code < codeError {
		return nil
	}
	said := fmt.Errorf("the broker did not take the message: %s (%#02x)", s.meaning(p), p.code)
	switch p.code {
	case codeUnauthorised, 0x90, 0x99: // may not; topic; format
		return channel.Refused(said)
	case codeQuota:
		return channel.RateLimitedAll(said, overQuota)
	default:
		return channel.NotSent(said)
	}
}
