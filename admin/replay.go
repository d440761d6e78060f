package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"leasehold/internal/fault"
)

const (
	// replayBatch is how many deliveries of one answer wait again in one transaction,
	// and how many are looked at in one read: a few milliseconds of the one writer.
	replayBatch = maxLimit
	// replayWithin bounds one request; its answer says where to go on.
	replayWithin = 2 * time.Second
)

// Replay says what is to be delivered again, what was delivered included: all of
// the named events, or of a window what went to one target. What waits is left
// alone.
type Replay struct {
	Events       []string  `json:"events,omitempty"` // ids; with them target alone may narrow it
	Target       string    `json:"target,omitempty"`
	Installation string    `json:"installation,omitempty"`
	Type         string    `json:"type,omitempty"` // of the events
	Since        time.Time `json:"since,omitzero"`
	Until        time.Time `json:"until,omitzero"`    // zero = now
	After        int64     `json:"after,omitempty"`   // the next of the answer before
	DryRun       bool      `json:"dry_run,omitempty"` // only count
}

// Replayed is what a Replay did, or would do.
type Replayed struct {
	Count   int       `json:"count"`             // of deliveries that wait again
	Waiting int       `json:"waiting,omitempty"` // of the named events: those that wait anyway
	Until   time.Time `json:"until,omitzero"`    // of the window; to be repeated with next
	Next    int64     `json:"next,omitempty"`    // there is more: ask again with this as after
}

func (a *API) replayEvents(w http.ResponseWriter, r *http.Request) error {
	var p Replay
	if err := read(w, r, &p); err != nil {
		return err
	}
	if err := a.checkReplay(&p); err != nil {
		return err
	}
	do := a.replayWindow
	if len(p.Events) > 0 {
		do = a.replayNamed
	}
	done, err := do(r.Context(), p)
	if err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, done)
}

// checkReplay refuses what would replay too much or nothing, and sets the end of
// the window.
func (a *API) checkReplay(p *Replay) error {
	named, window := len(p.Events) > 0, p.Installation != "" || p.Type != "" || !p.Since.IsZero() || !p.Until.IsZero() || p.After != 0
	switch now := time.Now().UTC(); {
	case named && window:
		return fault.Errorf(fault.Invalid, "events exclude since, until, installation and type")
	case len(p.Events) > replayBatch:
		return fault.Errorf(fault.Invalid, "events: at most %d at a time (got %d)", replayBatch, len(p.Events))
	case named:
	case p.Target == "":
		return fault.Errorf(fault.Invalid, "target: name the one that is to get them again")
	case p.Since.IsZero():
		return fault.Errorf(fault.Invalid, "since: say from when on, such as 2026-11-30T02:00:00Z, or name events")
	case p.Until.IsZero():
		p.Until = now
		fallthrough
	default:
		if !p.Since.Before(p.Until) {
			return fault.Errorf(fault.Invalid, "since %s is not before until %s", p.Since.Format(time.RFC3339), p.Until.Format(time.RFC3339))
		}
	}
	if a.o.Process == nil || p.Target == "" {
		return nil
	}
	var names []string
	for _, t := range a.o.Process.Targets() {
		names = append(names, t.Name)
	}
	if !slices.Contains(names, p.Target) {
		return fault.Errorf(fault.Invalid, "there is no target %q; there are: %s", p.Target, strings.Join(names, ", "))
	}
	return nil
}

// replayNamed replays all deliveries of the named events that are over.
func (a *API) replayNamed(ctx context.Context, p Replay) (done Replayed, err error) {
	var ids []string
	for _, id := range p.Events {
		e, err := a.o.Store.Event(ctx, id)
		if err != nil {
			return done, fmt.Errorf("replay: %w", err)
		}
		for _, d := range e.Deliveries {
			switch {
			case p.Target != "" && d.Target != p.Target:
			case d.State == deliveryStates[0]:
				done.Waiting++
			default:
				ids = append(ids, d.ID)
			}
		}
	}
	for batch := range slices.Chunk(ids, replayBatch) {
		n, err := a.redeliver(ctx, batch, p.DryRun)
		if err != nil {
			return done, err
		}
		done.Count += n
	}
	return done, nil
}

// replayWindow replays what a window selects, a batch at a time. An end that comes
// between two of them leaves the rest as it was.
func (a *API) replayWindow(ctx context.Context, p Replay) (Replayed, error) {
	done := Replayed{Until: p.Until, Next: p.After}
	q := ReplayQuery{Target: p.Target, Installation: p.Installation, Type: p.Type, Since: p.Since, Until: p.Until, Limit: replayBatch}
	for began := time.Now(); ; {
		q.After = done.Next
		found, next, err := a.o.Store.Replayable(ctx, q)
		if err != nil {
			return done, fmt.Errorf("replay: %w", err)
		}
		ids := make([]string, len(found))
		for i, d := range found {
			ids[i] = d.ID
		}
		n, err := a.redeliver(ctx, ids, p.DryRun)
		if err != nil {
			return done, err
		}
		done.Count, done.Next = done.Count+n, next
		if next == 0 || time.Since(began) > replayWithin {
			return done, nil
		}
	}
}

// redeliver makes deliveries wait again and wakes their lanes. It returns how many
// do now or, when nothing is to be done, how many would.
func (a *API) redeliver(ctx context.Context, ids []string, dryRun bool) (int, error) {
	if dryRun || len(ids) == 0 {
		return len(ids), nil
	}
	waiting, err := a.o.Store.RedeliverDeliveries(ctx, ids)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	a.wake(waiting)
	return len(waiting), nil
}
