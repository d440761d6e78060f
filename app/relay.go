package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery/outbound"
	"leasehold/store"
)

// poster takes in the messages of targets of type message. Two of one node are equal.
type poster struct {
	store  store.Store
	mailer *outbound.Mailer
	pace   *outbound.Pace // of the targets that may hear themselves
}

var _ outbound.Poster = poster{}

// Post implements outbound.Poster.
func (p poster) Post(ctx context.Context, m outbound.Message) error {
	posted, err := p.store.PutMessage(ctx, m)
	if err == nil {
		p.mailer.Wake(posted.Lease)
	}
	return err
}

// relay is the sink of a target of type message. Its messages may wait as long as
// its events may.
func relay(t config.Target, post outbound.Poster, pace *outbound.Pace) outbound.Relay {
	return outbound.Relay{
		Target: t.Name, Pace: pace,
		Poster: post, Installation: t.Installation, Conversation: t.Conversation, Thread: t.Thread, Text: cmp.Or(t.Text, "{text}"), ExpiresIn: t.MaxAge.Std(),
	}
}

// mute are the faults of targets of type message whose installation cannot send.
func (p *program) mute(c *config.Config) error {
	var faults config.Faults
	for _, t := range c.Targets {
		i := slices.IndexFunc(c.Installations, func(i config.Installation) bool { return i.ID == t.Installation })
		if t.Type != "message" || i < 0 { // config.Load has said so
			continue
		}
		kind := c.Installations[i].Type
		s := slices.IndexFunc(p.Types, func(s channel.Spec) bool { return s.Name == kind })
		if s < 0 {
			continue
		}
		var what string
		switch can := p.Types[s].Can; {
		case !can.Send:
			what = "installation: %q is of type %s, which cannot send"
		case t.Thread != "" && !can.Threads:
			what = "thread: %q is of type %s, which knows no threads"
		default:
			continue
		}
		faults = append(faults, config.Fault{
			File: t.Pos.File, Line: t.Pos.Line, Col: t.Pos.Col, Key: fmt.Sprintf("target %q", t.Name),
			Message: fmt.Sprintf(what, t.Installation, kind), Hint: "leasehold types list shows what each type can",
		})
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}
