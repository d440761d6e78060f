package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/internal/eventid"
)

// Reply is a message with which a program answered an event. It is stored together
// with the mark that the event is delivered, or not at all.
type Reply struct {
	channel.Message

	Key       string        // the delivery's webhook id, # and its number in the answer: of two with one key the first is stored
	ExpiresIn time.Duration // 0 = what the default for messages is
	Refused   string        // why it can never be sent; "" = it waits to be sent
}

// reply makes messages of what the target of p answered, and says why there are none
// although there should be.
func (d *Dispatcher) reply(p *pick, r Result) (replies []Reply, fault string) {
	a := r.Answer
	switch {
	case a == nil || r.Outcome != Taken || p.event == nil:
		return nil, ""
	case p.setup.NoReplies:
		return nil, ""
	case a.Fault != "":
		return nil, a.Fault
	case len(a.Messages) == 0 && a.Ack == nil:
		return nil, ""
	}
	var e channel.Event
	if err := json.Unmarshal(p.event.Body, &e); err != nil { // seal has read it
		return nil, err.Error()
	}
	d.acknowledges(p, &e, a.Ack)
	if len(a.Messages) == 0 {
		return nil, ""
	}
	loop := ""
	if d.opts.Breaker != nil {
		loop = d.opts.Breaker.Answer(p.event.Installation, &e, p.event.AcceptedAt)
	}
	can, known := d.opts.Can(p.event.ChannelType)
	for i, s := range a.Messages {
		m := s.About(&e, can)
		m.ID, m.Installation = eventid.NewMessage(time.Now()), p.event.Installation
		out := Reply{Message: m, Key: fmt.Sprintf("%s#%d", p.entry.webhookID, i+1), ExpiresIn: s.Expiry()}
		lacks := can.Lacks(m)
		switch faults := m.Faults(); {
		case loop != "":
			out.Refused = loop
		case !known:
			out.Refused = "the installation is of type " + p.event.ChannelType + ", which this program does not have"
		case lacks != "":
			out.Refused = "the installation is of type " + p.event.ChannelType + ", which " + lacks
		default:
			out.Refused = strings.Join(faults, "; ")
		}
		replies = append(replies, out)
	}
	return replies, ""
}

// sayReplies returns what to log, after the lock, of what a target answered.
func (d *Dispatcher) sayReplies(ctx context.Context, p *pick, attrs []slog.Attr) func() {
	replies, fault := p.replies, p.fault
	if fault == "" && len(replies) == 0 {
		return nil
	}
	return func() {
		if fault != "" {
			d.log.LogAttrs(ctx, slog.LevelWarn, "answer not taken", append(attrs, slog.String("error", fault), slog.String("next_step", stepAnswer))...)
		}
		for _, r := range replies {
			if r.Refused != "" {
				d.log.LogAttrs(ctx, slog.LevelInfo, "message refused", append(attrs, slog.String("message", r.ID), slog.String("error", r.Refused))...)
			}
		}
	}
}

// refuseBatch says, once for what a target is now, that nothing in the answer to a
// batch is a reply. d.mu is held.
func (d *Dispatcher) refuseBatch(ctx context.Context, p *pick, r Result) func() {
	if r.Answer == nil || p.setup.NoReplies || p.setup.mute {
		return nil
	}
	p.setup.mute = true
	return func() {
		d.log.LogAttrs(ctx, slog.LevelWarn, "answer not taken", slog.String("target", p.target.Name),
			slog.String("error", "a target with batch > 1 has no replies"), slog.String("next_step", stepUnbatch))
	}
}
