package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"leasehold/delivery/outbound"
)

// Trace is the whole way of an event through this program, or of a message.
type Trace struct {
	Event   *Event       `json:"event,omitempty"`   // without its body
	Message *MessageView `json:"message,omitempty"` // without its content
	Steps   []Step       `json:"steps"`             // in the order of time; what is still to come stands last
}

// Step is one thing that happened to it, or will.
type Step struct {
	At       time.Time `json:"at,omitzero"` // zero: nobody knows
	What     string    `json:"what"`        // happened, accepted, delivered, replied, dead, dropped, waits; of a message: posted, waits, or its state
	Target   string    `json:"target,omitempty"`
	Delivery string    `json:"delivery,omitempty"` // its id
	Message  string    `json:"message,omitempty"`  // the id of what was replied
	Attempts int       `json:"attempts,omitempty"` // made until then
	Detail   string    `json:"detail,omitempty"`
}

// What happens to an event before anybody is told of it; then follow the states of
// its deliveries, with waits for pending.
const (
	stepHappened = "happened" // on the platform, by the platform's clock
	stepAccepted = "accepted" // stored; the platform is told only after that
	stepWaits    = "waits"    // At is when it is tried next
	stepPosted   = "posted"   // a message: stored, before it was sent
	stepReplied  = "replied"  // a message answers the event: stored, before it was sent
)

// trace tells the way of the event that has this id, or one of whose deliveries has;
// or that of the message.
func (a *API) trace(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	id := r.PathValue("id")
	if m, err := a.o.Store.Message(r.Context(), id); err == nil {
		return a.answer(w, http.StatusOK, a.traceMessage(m))
	}
	if d, err := a.o.Store.Delivery(r.Context(), id); err == nil {
		id = d.EventID
	}
	e, err := a.o.Store.Event(r.Context(), id)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	replies, err := a.o.Store.Messages(r.Context(), MessageQuery{Event: e.ID, Limit: maxLimit})
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	slices.Reverse(replies) // the oldest first
	t := Trace{Event: &e, Steps: slices.Concat(beginning(e), a.journeySteps(e), replySteps(e, replies))}
	e.Body = nil
	slices.SortStableFunc(t.Steps[1:], func(x, y Step) int { // a platform's clock may be ahead of ours
		if x, y := x.What == stepWaits, y.What == stepWaits; x != y {
			return map[bool]int{true: 1, false: -1}[x]
		}
		return x.At.Compare(y.At)
	})
	return a.answer(w, http.StatusOK, t)
}

// beginning is how an event came to be here.
func beginning(e Event) []Step {
	said := "as " + e.PlatformID
	if e.Conversation != "" {
		said += ", in " + e.Conversation
	}
	if e.Thread != "" {
		said += ", thread " + e.Thread
	}
	stored := "stored, then acknowledged"
	if late := e.AcceptedAt.Sub(e.OccurredAt); !e.OccurredAt.IsZero() && late >= time.Second {
		stored += fmt.Sprintf("; heard %v after it happened", late.Round(time.Second))
	}
	return []Step{{At: e.OccurredAt, What: stepHappened, Detail: said}, {At: e.AcceptedAt, What: stepAccepted, Detail: stored}}
}

// journeySteps are where the event's deliveries stand.
func (a *API) journeySteps(e Event) (steps []Step) {
	for _, d := range e.Deliveries {
		s := Step{At: d.DeliveredAt, What: d.State, Target: d.Target, Delivery: d.ID, Attempts: d.Attempts}
		var notes []string
		switch {
		case d.State == deliveryStates[0]:
			s.At, s.What = d.NextAttempt, stepWaits
			notes = a.keeping(d.Target)
		case s.At.IsZero():
			s.At = d.GivenUpAt
		}
		if d.LastError != "" {
			notes = append(notes, "last error: "+d.LastError)
		}
		if d.Replay {
			notes = append(notes, "a replay")
		}
		s.Detail = strings.Join(notes, "; ")
		steps = append(steps, s)
	}
	return steps
}

// replySteps are the messages that answer the event, with what became of each.
func replySteps(e Event, replies []Message) (steps []Step) {
	for _, m := range replies {
		s := Step{At: m.CreatedAt, What: stepReplied, Message: m.ID, Attempts: m.Attempts}
		key, _, _ := strings.Cut(m.IdempotencyKey, "#")
		for _, d := range e.Deliveries {
			if d.ID == key { // the answer of a target
				s.Target, s.Delivery = d.Target, d.ID
			}
		}
		s.Detail = m.ID + ": " + m.Op + " to " + m.Conversation + ", " + m.State
		if m.Receipt != nil && m.Receipt.MessageID != "" {
			s.Detail += " as " + m.Receipt.MessageID
		}
		if m.LastError != "" {
			s.Detail += "; last error: " + m.LastError
		}
		steps = append(steps, s)
	}
	return steps
}

// traceMessage is the way of a message.
func (a *API) traceMessage(m Message) Trace {
	m.Text, m.Native = "", nil
	v := a.messageView(m)
	t := Trace{Message: &v, Steps: []Step{{At: m.CreatedAt, What: stepPosted, Detail: m.Op + " to " + m.Conversation}}}
	if m.Event != "" {
		t.Steps[0].Detail += ", in answer to " + m.Event
	}
	now := Step{At: m.EndedAt, What: m.State, Attempts: m.Attempts}
	var notes []string
	switch {
	case m.EndedAt.IsZero() && m.State == outbound.Queued.String():
		now.What, now.At = stepWaits, m.NextAttempt
		if v.WaitsFor != "" {
			notes = append(notes, "for "+v.WaitsFor)
		}
		notes = append(notes, "until "+m.ExpiresAt.Format(time.RFC3339)+" at the latest")
	case m.Receipt != nil && m.Receipt.MessageID != "":
		notes = append(notes, "as "+m.Receipt.MessageID)
	}
	if m.LastError != "" {
		notes = append(notes, "last error: "+m.LastError)
	}
	now.Detail = strings.Join(notes, "; ")
	t.Steps = append(t.Steps, now)
	return t
}

// keeping is what keeps a target from getting anything, as far as this process
// knows.
func (a *API) keeping(target string) []string {
	if a.o.Process == nil {
		return nil
	}
	for _, t := range a.o.Process.Targets() {
		if t.Name == target && t.State != "ok" {
			return []string{strings.TrimSuffix("the target is "+t.State+": "+t.Reason, ": ")}
		}
	}
	return nil
}
