package exec

import (
	"context"
	"encoding/json"

	"leasehold/channel"
)

// maxAsks is how many interactions of a program wait for their answers at once: more
// than people press buttons in 2.5 s. What comes beyond is answered as in defer mode.
const maxAsks = 64

// asked is an interaction that was not answered yet. It is answered once it is stored
// and decided, in either order.
type asked struct {
	id              json.RawMessage // of its event, as the program wrote it
	stored, decided bool
	ack             json.RawMessage // nil = deferred
}

// interact waits for the user's program's own answer to an event, beside everything
// else, and tells it once the event is stored, which the caller says by calling what is
// returned. The end of ctx ends the waiting.
func (s *session) interact(ctx context.Context, e channel.Event, id json.RawMessage) (stored func()) {
	a := &asked{id: id}
	s.mu.Lock()
	s.open[a] = struct{}{}
	s.mu.Unlock()
	select {
	case s.asks <- struct{}{}:
		s.rest.Add(1) // by who is heard out before rest is waited for
		s.link.Go(func() {
			defer s.rest.Done()
			defer func() { <-s.asks }()
			ack, ok := s.link.Ask(ctx, e)
			if !ok {
				ack = nil
			}
			s.decide(a, ack)
		})
	default:
		s.decide(a, nil)
	}
	return func() {
		s.settle(a, func() { a.stored = true })
	}
}

// decide says how an interaction is answered. The first word counts.
func (s *session) decide(a *asked, ack json.RawMessage) {
	s.settle(a, func() {
		if !a.decided {
			a.decided, a.ack = true, ack
		}
	})
}

// settle makes a change of an interaction, and answers it if that was what it lacked.
func (s *session) settle(a *asked, change func()) {
	s.mu.Lock()
	_, open := s.open[a]
	change()
	answers := open && a.stored && a.decided
	if answers {
		delete(s.open, a)
	}
	s.mu.Unlock()
	if answers && !s.fenced() {
		s.speech.answer(line("answer", reply{ID: a.id, Ack: a.ack, Defer: a.ack == nil}))
	}
}

// deferAll defers what is not decided: the program is to stop.
func (s *session) deferAll() {
	s.mu.Lock()
	open := make([]*asked, 0, len(s.open))
	for a := range s.open {
		open = append(open, a)
	}
	s.mu.Unlock()
	for _, a := range open {
		s.decide(a, nil)
	}
}
