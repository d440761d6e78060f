package outbound

import (
	"context"
	"errors"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
	"leasehold/internal/jsonframe"
	"leasehold/internal/wording"
)

// Poster takes messages in. Post returns when m is stored, or the one that was
// posted with its key before is, and who sends it has been told. fault.NotFound:
// there is no such installation.
type Poster interface {
	Post(ctx context.Context, m Message) error
}

// Relay is the sink of a target that is a conversation on a platform: it posts a
// message for each event, which counts as delivered once that is stored. Its key is
// the delivery's id, so that a redelivery posts nothing again. Two that are made
// alike are equal.
type Relay struct {
	Poster       Poster
	Installation string // who speaks
	Conversation string
	Thread       string
	Text         string        // a wording; an event that makes an empty text of it posts nothing
	ExpiresIn    time.Duration // of each message
	Target       string        // its name, by which Pace knows it
	Pace         *Pace         // nil: it cannot hear itself, and posts as fast as it may
}

var (
	_ delivery.Sink   = Relay{}
	_ delivery.Choosy = Relay{}
)

// Takes keeps out what would go in circles: what we said ourselves, and what was said
// where the message would go.
func (r Relay) Takes(installation string, e *channel.Event) bool {
	return !e.Sender.Self && (installation != r.Installation || e.Conversation.ID != r.Conversation)
}

// Deliver posts a message for an event.
func (r Relay) Deliver(ctx context.Context, d delivery.Delivery) delivery.Result {
	if why := r.circles(d); why != "" { // its delivery was stored under other rules
		return delivery.Result{Outcome: delivery.Refused, Reason: why, NextStep: "drop it with leasehold deliveries drop"}
	}
	text, err := wording.Parse(r.Text)
	if err != nil {
		return delivery.Result{Outcome: delivery.Refused, Reason: "text: " + err.Error(), NextStep: "correct the target's text, then run leasehold reload"}
	}
	words := strings.ToValidUTF8(text.Render(d.Envelope), "\uFFFD")
	if strings.TrimSpace(words) == "" {
		return delivery.Result{Outcome: delivery.Taken}
	}
	if r.Pace != nil {
		if wait, why := r.Pace.take(r.Target); wait > 0 {
			return delivery.Result{Outcome: delivery.Down, Reason: why, After: wait, NextStep: "leasehold check names the circle and the way out; then leasehold deliveries drop what waits"}
		}
	}
	err = r.Poster.Post(ctx, Message{
		Message: channel.Message{
			ID: eventid.NewMessage(time.Now()), Installation: r.Installation, Op: "send", Conversation: r.Conversation, Thread: r.Thread, Text: words,
		},
		IdempotencyKey: d.ID, ExpiresIn: r.ExpiresIn,
	})
	switch {
	case err == nil:
		return delivery.Result{Outcome: delivery.Taken}
	case errors.Is(ctx.Err(), context.Canceled):
		return delivery.Result{Outcome: delivery.Aborted}
	case ctx.Err() != nil:
		return delivery.Result{Outcome: delivery.Slow, Reason: "the store did not take the message in time", NextStep: "see leasehold status"}
	case fault.Is(err, fault.NotFound):
		return delivery.Result{Outcome: delivery.Down, Reason: err.Error(), NextStep: "define the installation again, or remove the target"}
	default:
		return delivery.Result{Outcome: delivery.Down, Reason: err.Error(), NextStep: "see leasehold status"}
	}
}

// circles says why an event must not be posted; "" = it may.
func (r Relay) circles(d delivery.Delivery) string {
	has := func(value string, path ...string) bool {
		raw, ok := jsonframe.Pointer(append([]string{"data"}, path...)).In(d.Envelope)
		return ok && jsonframe.Text(raw) == value
	}
	switch {
	case has("true", "sender", "self"):
		return "we said it ourselves"
	case d.Installation == r.Installation && has(r.Conversation, "conversation", "id"):
		return "it was said in the conversation that it would be sent to"
	}
	return ""
}
