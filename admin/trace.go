package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Trace is an event's whole way through this program.
type Trace struct {
	Event Event  `json:"event"` // without its body
	Steps []Step `json:"steps"` // in the order of time; what is still to come stands last
}

// Step is one thing that happened to an event, or will.
type Step struct {
	At       time.Time `json:"at,omitzero"` // zero: nobody knows
	What     string    `json:"what"`        // happened, accepted, delivered, dead, dropped, waits
	Target   string    `json:"target,omitempty"`
	Delivery string    `json:"delivery,omitempty"` // its id
	Attempts int       `json:"attempts,omitempty"` // made until then
	Detail   string    `json:"detail,omitempty"`
}

// What happens to an event before anybody is told of it; then follow the states of
// its deliveries, with waits for pending.
const (
	stepHappened = "happened" // on the platform, by the platform's clock
	stepAccepted = "accepted" // stored; the platform is told only after that
	stepWaits    = "waits"    // At is when it is tried next
)

// trace tells the way of the event that has this id, or one of whose deliveries has.
func (a *API) trace(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	id := r.PathValue("id")
	if d, err := a.o.Store.Delivery(r.Context(), id); err == nil {
		id = d.EventID
	}
	e, err := a.o.Store.Event(r.Context(), id)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	t := Trace{Event: e, Steps: beginning(e)}
	t.Event.Body = nil
	for _, tell := range []func(context.Context, Event) ([]Step, error){a.journeySteps} {
		steps, err := tell(r.Context(), e)
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		t.Steps = append(t.Steps, steps...)
	}
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
func (a *API) journeySteps(_ context.Context, e Event) (steps []Step, _ error) {
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
	return steps, nil
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
