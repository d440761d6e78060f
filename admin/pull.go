package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/internal/fault"
)

// pullLongest is how long a pull waits at most: what proxies and clients give a
// request by default.
const pullLongest = time.Minute

// Pulled is a delivery that was pulled.
type Pulled struct {
	Lease     string          `json:"lease"` // for ack and nack
	Until     time.Time       `json:"until"` // then it is offered again
	WebhookID string          `json:"webhook_id"`
	Attempt   int             `json:"attempt"`
	Replay    bool            `json:"replay,omitempty"`
	Event     json.RawMessage `json:"event"` // the body of a webhook
}

func pulledOf(l delivery.Leased) Pulled {
	return Pulled{Lease: l.Lease, Until: l.Until.UTC(), WebhookID: l.ID, Attempt: l.Attempt, Replay: l.Replay, Event: l.Envelope}
}

// Settled is the answer to leases that were acknowledged or given back.
type Settled struct {
	Settled int      `json:"settled"`
	Over    []string `json:"over"` // those that were over already
}

// Leases are those that a program is done with.
type Leases struct {
	Leases []string `json:"leases"`
	// Reason and After are of a nack: why, and how long not to be offered it again.
	Reason string           `json:"reason,omitempty"`
	After  channel.Duration `json:"after,omitzero"`
}

// pull answers with the deliveries that can go now. It waits for the first; without
// any it answers with none.
func (a *API) pull(w http.ResponseWriter, r *http.Request) error {
	if a.o.Live == nil {
		return fault.Wrap(fault.Conflict, errNotRunning)
	}
	q := queryOf(r, "wait", "max")
	wait, most := q.span("wait", pullLongest), int(q.number("max", 1, delivery.PullMost))
	if err := q.err(); err != nil {
		return err
	}
	ctx, end := streaming(r)
	defer end()
	limited, cancel := context.WithTimeout(ctx, max(wait, time.Millisecond))
	defer cancel()
	name := r.PathValue("name")
	leased, err := a.o.Live.Pull(limited, name, max(most, 1))
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	if r.Context().Err() != nil { // nobody reads the answer
		a.o.Live.Release(name, leased)
		return nil
	}
	page := Page[Pulled]{Items: make([]Pulled, 0, len(leased))}
	for _, l := range leased {
		page.Items = append(page.Items, pulledOf(l))
	}
	b, err := a.encode(page)
	if err != nil {
		a.o.Live.Release(name, leased)
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := w.Write(b); err != nil { // as it is: it is what a webhook would get
		a.o.Live.Release(name, leased)
	}
	return nil
}

// acknowledge ends deliveries: they are delivered.
func (a *API) acknowledge(w http.ResponseWriter, r *http.Request) error {
	return a.settle(w, r, func(name string, l Leases) ([]string, error) {
		if l.Reason != "" || l.After != 0 {
			return nil, fault.Errorf(fault.Invalid, "reason and after go with nack")
		}
		return a.o.Live.Acknowledge(name, l.Leases)
	})
}

// giveBack ends deliveries that could not be handled, which counts as an attempt.
func (a *API) giveBack(w http.ResponseWriter, r *http.Request) error {
	return a.settle(w, r, func(name string, l Leases) ([]string, error) {
		return a.o.Live.GiveBack(name, l.Leases, a.o.Redact.String(l.Reason), l.After.Std())
	})
}

func (a *API) settle(w http.ResponseWriter, r *http.Request, how func(name string, l Leases) ([]string, error)) error {
	if a.o.Live == nil {
		return fault.Wrap(fault.Conflict, errNotRunning)
	}
	var in Leases
	if err := read(w, r, &in); err != nil {
		return err
	}
	if len(in.Leases) == 0 {
		return fault.Errorf(fault.Invalid, "leases: name at least one, as the pull did")
	}
	over, err := how(r.PathValue("name"), in)
	if err != nil {
		return fmt.Errorf("settle what was pulled: %w", err)
	}
	if over == nil {
		over = []string{}
	}
	return a.answer(w, http.StatusOK, Settled{Settled: len(in.Leases) - len(over), Over: over})
}
