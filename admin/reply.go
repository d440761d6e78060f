package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/internal/fault"
)

// Reply is what somebody answers an event with. What it leaves open is the event's:
// the conversation, the thread where the type knows any, and the message that it
// refers to.
type Reply struct {
	delivery.Said

	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// replyEvent stores a message that answers an event. The id is the event's, or that
// of one of its deliveries, which is what a program knows it by.
func (a *API) replyEvent(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	var in Reply
	if err := read(w, r, &in); err != nil {
		return err
	}
	id := r.PathValue("id")
	if d, err := a.o.Store.Delivery(r.Context(), id); err == nil {
		id = d.EventID
	}
	e, err := a.o.Store.Event(r.Context(), id)
	if err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	row, err := a.speaker(r.Context(), e.Installation)
	if err != nil {
		return err
	}
	m, err := a.answerTo(r.Context(), row, e, in)
	if err != nil {
		return err
	}
	return a.post(w, r, m, wait)
}

// answerTo is in as a message of the event's installation.
func (a *API) answerTo(ctx context.Context, row Installation, e Event, in Reply) (outbound.Message, error) {
	var heard channel.Event
	if err := json.Unmarshal(e.Body, &heard); err != nil {
		return outbound.Message{}, fmt.Errorf("reply: read the event: %w", err)
	}
	spec, _ := a.o.Types.Lookup(row.Type) // letter says that there is none
	about := in.About(&heard, spec.Can)
	p := Post{
		Op: about.Op, Conversation: about.Conversation, Thread: about.Thread, MessageID: about.MessageID, Text: about.Text, Format: about.Format, Native: about.Native,
		IdempotencyKey: in.IdempotencyKey, ExpiresIn: channel.Duration(outbound.ExpiryOf(about.Op)),
	}
	if in.ExpiresIn != nil {
		p.ExpiresIn = *in.ExpiresIn
	}
	// Such keys are those of what programs answer with, which must not be taken.
	if strings.HasPrefix(p.IdempotencyKey, "msg_") && strings.Contains(p.IdempotencyKey, "#") {
		return outbound.Message{}, fault.Errorf(fault.Invalid, "idempotency_key: msg_…# is the key of what a target answers; take another")
	}
	m, err := a.letter(ctx, row, p)
	m.Answers = e.Seq
	return m, err
}
