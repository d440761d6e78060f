package admin

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"leasehold/internal/fault"
)

// deliveryStates are what a delivery can be, as filters name it.
var deliveryStates = []string{"pending", "delivered", "dead", "dropped"}

// maxPicked bounds how many deliveries one request replays or drops by filter; the
// answer says when more are left.
const maxPicked = 10_000

// Pick selects deliveries to replay or to drop: by id, or by filter.
type Pick struct {
	IDs          []string `json:"ids,omitempty"`
	Installation string   `json:"installation,omitempty"`
	Target       string   `json:"target,omitempty"`
	State        string   `json:"state,omitempty"` // of a filter: dead, when left out
}

// Outcome is what a replay or a drop did.
type Outcome struct {
	Count int  `json:"count"`          // of deliveries that changed
	More  bool `json:"more,omitempty"` // the filter selects further ones: ask again
}

func (a *API) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "installation", "target", "state", "before", "limit")
	d := DeliveryQuery{
		Installation: q.text("installation"), Target: q.text("target"), State: q.oneOf("state", deliveryStates...),
		Before: q.number("before", 1, math.MaxInt64), Limit: q.limit(),
	}
	if err := q.err(); err != nil {
		return err
	}
	items, next, err := a.deliveryPage(r.Context(), d)
	if err != nil {
		return err
	}
	page := Page[Delivery]{Items: append([]Delivery{}, items...)}
	if next > 0 {
		page.Next = strconv.FormatInt(next, 10)
	}
	return a.answer(w, http.StatusOK, page)
}

// deliveryPage reads a page that never cuts the deliveries of one event in two,
// since the cursor counts events: it leaves a cut-off event to the next page, or
// takes it whole when it is the only one. next is the cursor, 0 = none.
func (a *API) deliveryPage(ctx context.Context, q DeliveryQuery) (page []Delivery, next int64, err error) {
	page, err = a.o.Store.Deliveries(ctx, q)
	if err != nil {
		return nil, 0, fmt.Errorf("list deliveries: %w", err)
	}
	if len(page) < q.Limit {
		return page, 0, nil
	}
	cut := page[len(page)-1].EventSeq
	first := slices.IndexFunc(page, func(d Delivery) bool { return d.EventSeq == cut })
	if first > 0 {
		return page[:first], page[first-1].EventSeq, nil
	}
	q.Limit = maxLimit
	if page, err = a.o.Store.Deliveries(ctx, q); err != nil {
		return nil, 0, fmt.Errorf("list deliveries: %w", err)
	}
	if end := slices.IndexFunc(page, func(d Delivery) bool { return d.EventSeq != cut }); end > 0 {
		page = page[:end]
	}
	return page, cut, nil
}

func (a *API) showDelivery(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	d, err := a.o.Store.Delivery(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("show delivery: %w", err)
	}
	return a.answer(w, http.StatusOK, d)
}

func (a *API) replayDelivery(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	d, err := a.o.Store.Delivery(r.Context(), id)
	if err != nil {
		return fmt.Errorf("replay delivery: %w", err)
	}
	n, err := a.replay(r.Context(), []string{id})
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.Errorf(fault.Conflict, "delivery %s is %s; only a dead or dropped one can be replayed", id, d.State)
	}
	return a.answer(w, http.StatusOK, Outcome{Count: n})
}

func (a *API) dropDelivery(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	d, err := a.o.Store.Delivery(r.Context(), id)
	if err != nil {
		return fmt.Errorf("drop delivery: %w", err)
	}
	n, err := a.drop(r.Context(), []string{id})
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.Errorf(fault.Conflict, "delivery %s is %s; only one that waits or is dead can be dropped", id, d.State)
	}
	return a.answer(w, http.StatusOK, Outcome{Count: n})
}

func (a *API) replayDeliveries(w http.ResponseWriter, r *http.Request) error {
	return a.many(w, r, []string{"dead", "dropped"}, a.replay)
}

func (a *API) dropDeliveries(w http.ResponseWriter, r *http.Request) error {
	return a.many(w, r, []string{"dead", "pending"}, a.drop)
}

func (a *API) many(w http.ResponseWriter, r *http.Request, states []string, do func(context.Context, []string) (int, error)) error {
	var p Pick
	if err := read(w, r, &p); err != nil {
		return err
	}
	ids, more, err := a.pick(r.Context(), p, states)
	if err != nil {
		return err
	}
	n, err := do(r.Context(), ids)
	if err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, Outcome{Count: n, More: more})
}

// pick returns the ids that p selects. Dead is the state of a filter that names
// none: nobody should drop what waits by forgetting a word.
func (a *API) pick(ctx context.Context, p Pick, states []string) (ids []string, more bool, err error) {
	filter := p.Installation != "" || p.Target != "" || p.State != ""
	switch {
	case len(p.IDs) > 0 && filter:
		return nil, false, fault.Errorf(fault.Invalid, "ids exclude the filters installation, target and state")
	case len(p.IDs) > maxPicked:
		return nil, false, fault.Errorf(fault.Invalid, "ids: at most %d at a time (got %d)", maxPicked, len(p.IDs))
	case len(p.IDs) > 0:
		return p.IDs, false, nil
	case !filter:
		return nil, false, fault.Errorf(fault.Invalid, "name ids, or a filter: installation, target or state")
	case p.State == "":
		p.State = states[0]
	case !slices.Contains(states, p.State):
		return nil, false, fault.Errorf(fault.Invalid, "state: must be one of %v", states)
	}
	q := DeliveryQuery{Installation: p.Installation, Target: p.Target, State: p.State, Limit: maxLimit}
	for {
		page, next, err := a.deliveryPage(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, d := range page {
			ids = append(ids, d.ID)
		}
		if next == 0 || len(ids) >= maxPicked {
			return ids, next > 0, nil
		}
		q.Before = next
	}
}

// replay makes deliveries wait again and wakes their lanes.
func (a *API) replay(ctx context.Context, ids []string) (int, error) {
	waiting, err := a.o.Store.ReplayDeliveries(ctx, ids)
	if err != nil {
		return 0, err //nolint:wrapcheck // it begins with what was done
	}
	a.wake(waiting)
	return len(waiting), nil
}

// drop gives deliveries up and wakes their lanes, which hold some in memory.
func (a *API) drop(ctx context.Context, ids []string) (int, error) {
	var waiting []Delivery
	for _, id := range ids {
		if a.o.Process == nil {
			break // nobody has lanes
		}
		d, err := a.o.Store.Delivery(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return 0, fmt.Errorf("drop deliveries: %w", err)
		case d.State == deliveryStates[0]:
			waiting = append(waiting, d)
		}
	}
	n, err := a.o.Store.DropDeliveries(ctx, ids)
	if err != nil {
		return 0, err //nolint:wrapcheck // it begins with what was done
	}
	a.wake(waiting)
	return n, nil
}

func (a *API) wake(waiting []Delivery) {
	if a.o.Process == nil || len(waiting) == 0 {
		return
	}
	leases := make([]string, len(waiting))
	for i, d := range waiting {
		leases[i] = d.Lease
	}
	slices.Sort(leases)
	a.o.Process.Wake(slices.Compact(leases))
}
