package websocket

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
)

var (
	errNotConnected = errors.New("the server has not said that we are connected")
	errOver         = errors.New("the connection has ended")
	errTwice        = errors.New("the message is on its way already")
)

// Send writes the frame that the config's template for the op makes of the message. It
// returns once the platform has answered it, or without answer.id once a ping that was written
// behind it was answered: who answers a ping has read what came before it, which is
// all that a WebSocket can tell. A message that was written and not answered within
// answer.within, or before the connection ended, has an unknown outcome.
func (s *socket) Send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	frame, answered, err := s.plan.frameOf(m)
	if err != nil {
		return channel.Receipt{}, channel.Refused(err)
	}
	session := s.live.Load()
	if session == nil {
		return channel.Receipt{}, channel.NotSent(errNotConnected)
	}
	ctx, cancel := context.WithTimeout(ctx, s.plan.answer.within)
	defer cancel()
	return session.say(ctx, m.ID, frame, answered)
}

// say sends a message and waits for what tells that it was taken.
func (s *session) say(ctx context.Context, id string, frame []byte, answered bool) (channel.Receipt, error) {
	answer, err := s.out.enter(id, answered)
	if err != nil {
		return channel.Receipt{}, channel.NotSent(err)
	}
	defer s.out.leave(id)
	if err := ctx.Err(); err != nil {
		return channel.Receipt{}, channel.NotSent(err)
	}
	// A caller who goes does not interrupt the write: half a frame would end the
	// connection for everybody.
	before := s.conn.wire.wrote()
	if err := s.write(context.WithoutCancel(ctx), frame); err != nil {
		err = s.plan.words.Error("write the message: ", err)
		if s.conn.wire.lacks(before) {
			return channel.Receipt{}, channel.NotSent(err)
		}
		return channel.Receipt{}, err
	}
	if answer == nil {
		return channel.Receipt{}, s.prove(ctx)
	}
	select {
	case f := <-answer:
		return s.plan.taken(f)
	case <-ctx.Done():
		return channel.Receipt{}, fmt.Errorf("the server has not answered the message: %w", ctx.Err())
	case <-s.ended:
	}
	select { // what it said last counts
	case f := <-answer:
		return s.plan.taken(f)
	default:
		return channel.Receipt{}, errors.New("the connection ended before the server answered the message")
	}
}

// answered hands an answer to who waits for it; false: nobody does.
func (s *session) answered(f frame) bool {
	if !f.json {
		return false
	}
	id := s.plan.answer.id.Scalar(f.data)
	return id != nil && s.out.answer(jsonframe.Text(id), f.data)
}

// outbox are the messages on their way.
type outbox struct {
	mu      sync.Mutex // guards what follows
	waiting map[string]chan []byte
	over    bool
	all     sync.WaitGroup // nobody enters once over is set
}

// enter counts a message and returns where its answer will come, nil if it has none.
func (o *outbox) enter(id string, answers bool) (<-chan []byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.over:
		return nil, errOver
	case o.waiting[id] != nil:
		return nil, errTwice
	}
	o.all.Add(1)
	if !answers {
		return nil, nil
	}
	answer := make(chan []byte, 1)
	if o.waiting == nil {
		o.waiting = map[string]chan []byte{}
	}
	o.waiting[id] = answer
	return answer, nil
}

func (o *outbox) leave(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
	o.all.Done()
}

func (o *outbox) answer(id string, frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer := o.waiting[id]
	if answer == nil {
		return false
	}
	select {
	case answer <- frame:
	default: // it was answered twice
	}
	return true
}

// close lets nobody enter any more and waits for those who have.
func (o *outbox) close() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.all.Wait()
}
