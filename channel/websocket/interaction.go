package websocket

import (
	"context"
	"encoding/json"
	"sync"

	"leasehold/channel"
	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
)

// nameAck stands for the program's own answer in an interaction's frame.
const nameAck = "ack"

// interaction is a parsed Interaction.
type interaction struct {
	when            *match
	answer, working *jsonframe.Template // nil = not there
}

func (p *plan) readInteraction(c Config, parts *handshake.Parts, f *faults) {
	x := c.Interaction
	p.interaction = interaction{
		when:    f.match("interaction.when", x.When),
		answer:  f.template("interaction.answer", x.Answer, parts.Names(jsonframe.NameID, nameAck), true),
		working: f.template("interaction.working", x.Working, parts.Names(jsonframe.NameID), true),
	}
	switch {
	case x.When == (Match{}) && (x.Answer != "" || x.Working != ""):
		f.add("interaction.when", "is missing: no frame wants an answer")
	case x.Answer != "" && !p.interaction.answer.Uses(nameAck):
		f.add("interaction.answer", "must hold {{ack}}, or it says nothing of what the program answered")
	}
}

// interact waits for the program's own answer to an event, beside everything else, and
// gives it to the platform once the event is stored, which the caller tells.
func (s *session) interact(e channel.Event, v jsonframe.Values) (stored func()) {
	kept := make(chan struct{})
	s.link.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.link.Go(func() { // a connection that is over answers nothing
			select {
			case <-s.ended:
				cancel()
			case <-ctx.Done():
			}
		})
		ack, ok := json.RawMessage(nil), false
		if s.plan.interaction.answer != nil {
			ack, ok = s.link.Ask(ctx, e)
		}
		select {
		case <-kept:
			s.respond(v, ack, ok)
		case <-s.ended:
		}
	})
	return sync.OnceFunc(func() { close(kept) })
}

// respond says what the program answered, or that it is at work.
func (s *session) respond(v jsonframe.Values, ack json.RawMessage, ok bool) {
	t := s.plan.interaction.working
	if ok {
		t = s.plan.interaction.answer
		v.Message = map[string]json.RawMessage{nameAck: ack}
	}
	if t == nil {
		return
	}
	if frame, known := t.Render(v); known {
		// As for an acknowledgement: a connection that takes none ends by itself.
		_ = s.write(context.Background(), frame)
	}
}
