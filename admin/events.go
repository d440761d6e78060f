package admin

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
)

func eventQuery(r *http.Request) (EventQuery, *query) {
	q := queryOf(r, "installation", "type", "after", "before", "limit")
	e := EventQuery{
		Installation: q.text("installation"), Type: q.text("type"),
		After: q.number("after", 1, math.MaxInt64), Before: q.number("before", 1, math.MaxInt64), Limit: q.limit(),
	}
	if e.After > 0 && e.Before > 0 {
		q.faults = append(q.faults, "after and before exclude each other")
	}
	return e, q
}

func (a *API) listEvents(w http.ResponseWriter, r *http.Request) error {
	e, q := eventQuery(r)
	if err := q.err(); err != nil {
		return err
	}
	events, err := a.o.Store.Events(r.Context(), e)
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	page := Page[Event]{Items: append([]Event{}, events...)}
	if len(events) == e.Limit {
		page.Next = strconv.FormatInt(events[len(events)-1].Seq, 10)
	}
	return a.answer(w, http.StatusOK, page)
}

func (a *API) showEvent(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	e, err := a.o.Store.Event(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("show event: %w", err)
	}
	return a.answer(w, http.StatusOK, e)
}
