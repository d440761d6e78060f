package exec

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
)

const (
	// maxAcks and maxAckBytes bound the acknowledgements that wait for a program that
	// does not read: enough for four commits, and little beside the events.
	maxAcks     = 1024
	maxAckBytes = 256 << 10

	// maxAnswers and maxAnswerBytes bound the answers to interactions that wait for it.
	// The oldest give way: their platforms wait for a few seconds only.
	maxAnswers     = 256
	maxAnswerBytes = 1 << 20
)

var (
	errMute    = errors.New("the program does not read its standard input")
	errNotHeld = errors.New("the program has ended")
)

// speech is what we say to a program. Nobody but a sender waits for it: a program
// may write ten thousand events before it reads a line, and one that never reads
// is still heard. What waits is bounded: acknowledgements that pile up are joined,
// since each is one for all that came before it.
type speech struct {
	w    io.WriteCloser
	wake chan struct{} // holds one: there is something to say, or nothing more

	mu       sync.Mutex // guards what follows
	orders   [][]byte   // start, ping, stop
	acks     []json.RawMessage
	ackBytes int
	answers  [][]byte // to interactions
	sends    []*saying
	pinged   bool // a ping waits
	over     bool
}

// saying is a send that waits to be said.
type saying struct {
	line  []byte
	begun bool // guarded by the speech
	said  chan error
}

func newSpeech(w io.WriteCloser) *speech { return &speech{w: w, wake: make(chan struct{}, 1)} }

// run says what there is to say until close or a failing write.
func (s *speech) run() {
	defer s.close()
	for range s.wake {
		for {
			b, x, over := s.take()
			if over {
				return
			}
			if len(b) == 0 {
				break
			}
			_, err := s.w.Write(b)
			if x != nil {
				x.said <- err
			}
			if err != nil {
				return // the program has closed its ears, or has ended
			}
		}
	}
}

// take takes what is to be said next, in one write: at most one send, since of
// those that a write that fails has in it nobody knows whether they were said.
func (s *speech) take() (b []byte, x *saying, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, nil, true
	}
	for _, id := range s.acks {
		b = append(b, line("ack", ack{id})...)
	}
	for _, a := range s.answers { // behind the acknowledgements of their events
		b = append(b, a...)
	}
	for _, o := range s.orders {
		b = append(b, o...)
	}
	if len(s.sends) > 0 {
		x, s.sends = s.sends[0], s.sends[1:]
		x.begun = true
		b = append(b, x.line...)
	}
	s.acks, s.ackBytes, s.answers, s.orders, s.pinged = nil, 0, nil, nil, false
	return b, x, false
}

// close ends the program's standard input. What still waits is not said.
func (s *speech) close() {
	s.mu.Lock()
	over, sends := s.over, s.sends
	s.over, s.acks, s.answers, s.orders, s.sends = true, nil, nil, nil, nil
	s.mu.Unlock()
	for _, x := range sends {
		x.said <- errNotHeld
	}
	if !over {
		s.nudge()
		_ = s.w.Close() // which also ends a write that waits for the program
	}
}

func (s *speech) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// order says a line of ours.
func (s *speech) order(b []byte) {
	s.mu.Lock()
	if !s.over {
		s.orders = append(s.orders, b)
	}
	s.mu.Unlock()
	s.nudge()
}

// ping asks for a sign of life, unless the last time is still waiting to be said.
func (s *speech) ping() {
	s.mu.Lock()
	waits := s.pinged
	s.pinged = true
	s.mu.Unlock()
	if !waits {
		s.order(line("ping", ping{}))
	}
}

// ack acknowledges an event, and with it all before it.
func (s *speech) ack(id json.RawMessage) {
	s.mu.Lock()
	if len(s.acks) >= maxAcks || s.ackBytes+len(id) > maxAckBytes {
		s.acks, s.ackBytes = nil, 0
	}
	if !s.over {
		s.acks = append(s.acks, id)
		s.ackBytes += len(id)
	}
	s.mu.Unlock()
	s.nudge()
}

// answer says a line that answers an interaction.
func (s *speech) answer(b []byte) {
	s.mu.Lock()
	if !s.over {
		s.answers = append(s.answers, b)
		size := 0
		for _, a := range s.answers {
			size += len(a)
		}
		for len(s.answers) > maxAnswers || size > maxAnswerBytes && len(s.answers) > 1 {
			size -= len(s.answers[0])
			s.answers = s.answers[1:]
		}
	}
	s.mu.Unlock()
	s.nudge()
}

// say says a line and waits until it is said. begun is false when surely nothing
// of it was.
func (s *speech) say(ctx context.Context, b []byte) (begun bool, err error) {
	x := &saying{line: b, said: make(chan error, 1)}
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return false, errNotHeld
	}
	s.sends = append(s.sends, x)
	s.mu.Unlock()
	s.nudge()
	select {
	case err = <-x.said:
	case <-ctx.Done():
		err = errMute
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.begun {
		s.sends = slices.DeleteFunc(s.sends, func(y *saying) bool { return y == x })
	}
	return x.begun, err
}
