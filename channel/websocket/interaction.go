package websocket

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

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

	followUp, expires jsonframe.Pointer // nil = not there
	good              time.Duration
	hidden            []jsonframe.Pointer // what raw does not hold, followUp included
}

func (p *plan) readInteraction(c Config, parts *handshake.Parts, f *faults) {
	x := c.Interaction
	p.interaction = interaction{
		when:    f.match("interaction.when", x.When),
		answer:  f.template("interaction.answer", x.Answer, parts.Names(jsonframe.NameID, nameAck), true),
		working: f.template("interaction.working", x.Working, parts.Names(jsonframe.NameID), true),
	}
	p.readFollowUp(x, f)
	switch {
	case x.When == (Match{}) && (x.Answer != "" || x.Working != ""):
		f.add("interaction.when", "is missing: no frame wants an answer")
	case x.Answer != "" && !p.interaction.answer.Uses(nameAck):
		f.add("interaction.answer", "must hold {{ack}}, or it says nothing of what the program answered")
	}
}

func (p *plan) readFollowUp(x Interaction, f *faults) {
	i := &p.interaction
	i.followUp, i.expires, i.good = f.pointer("interaction.follow_up", x.FollowUp), f.pointer("interaction.follow_up_expires", x.FollowUpExpires), x.FollowUpFor.Std()
	if i.followUp != nil {
		i.hidden = append(i.hidden, i.followUp)
	}
	for n, text := range x.Hide {
		if at := f.pointer(fmt.Sprintf("interaction.hide[%d]", n), text); at != nil {
			i.hidden = append(i.hidden, at)
		}
	}
	if i.followUp != nil && (i.good < time.Second || i.good > channel.FollowUpMost) {
		f.add("interaction.follow_up_for", "want 1s to %s, not %s", channel.FollowUpMost, i.good)
	}
	used := i.expires != nil
	for _, t := range p.messages {
		used = used || t.Uses(nameFollowUp)
	}
	if i.followUp == nil && used {
		f.add("interaction.follow_up", "is missing: no frame holds an address")
	}
}

// split takes out of an event's frame what is secret, and returns what of it is the
// address for answers.
func (i *interaction) split(frame []byte, now time.Time) (raw []byte, at channel.FollowUp) {
	if len(i.hidden) == 0 {
		return frame, at
	}
	if address := i.followUp.Scalar(frame); address != nil {
		at = channel.FollowUp{Address: channel.NewSecret(jsonframe.Text(address)), Expires: now.Add(i.good)}
		if expires := i.expires.Scalar(frame); expires != nil {
			if t := jsonframe.ParseTime(jsonframe.Text(expires)); !t.IsZero() {
				at.Expires = t
			}
		}
	}
	return jsonframe.Without(frame, i.hidden...), at
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
