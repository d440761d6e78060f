package admin

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

// tailEvery is how often a tail looks for new events: soon enough for eyes, and an
// indexed read of nothing is some microseconds.
const tailEvery = 200 * time.Millisecond

// tailEvents streams events as server-sent events, each with its seq as id, from
// the newest on, or after Last-Event-ID or ?after, so that a reader which lost
// its connection misses nothing. It reads the store, and so shows exactly what is
// durable, whoever accepted it. It ends with the request, or the server.
func (a *API) tailEvents(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "installation", "type", "after", "body")
	e := EventQuery{Installation: q.text("installation"), Type: q.text("type"), Limit: maxLimit}
	from, body := q.number("after", 0, math.MaxInt64), q.oneOf("body", "true", "false") == "true"
	start := q.text("after") != ""
	if err := q.err(); err != nil {
		return err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return fault.Errorf(fault.Invalid, "Last-Event-ID: must be the id of an event of this stream")
		}
		from, start = n, true
	}
	if !start {
		newest, err := a.o.Store.Events(r.Context(), EventQuery{Limit: 1})
		if err != nil {
			return fmt.Errorf("tail events: %w", err)
		}
		for _, n := range newest {
			from = n.Seq
		}
	}
	out, ok := beginStream(w, 0)
	if !ok {
		return nil
	}
	ctx, cancel := streaming(r)
	defer cancel()
	a.stream(ctx, out, e, from, body)
	return nil
}

// stream writes until ctx ends or the reader is gone. A store that fails ends it,
// too: the reader comes back with its Last-Event-ID and is told why.
func (a *API) stream(ctx context.Context, out eventStream, q EventQuery, from int64, body bool) {
	for quiet := time.Duration(0); ; {
		events, err := a.since(ctx, q, from)
		if err != nil {
			return
		}
		for _, e := range events {
			b, err := a.tailed(ctx, e, body)
			if err != nil || !out.send(b) {
				return
			}
			from, quiet = e.Seq, 0
		}
		if len(events) > 0 {
			continue // there may be more
		}
		if quiet += tailEvery; quiet >= streamAlive {
			if quiet = 0; !out.alive() {
				return
			}
		}
		if loop.Sleep(ctx, tailEvery) != nil {
			return
		}
	}
}

// since lists events after seq, oldest first. The store takes 0 for "from the
// newest back", so the beginning is found that way, page by page.
func (a *API) since(ctx context.Context, q EventQuery, seq int64) ([]Event, error) {
	if q.After = seq; seq > 0 {
		return a.o.Store.Events(ctx, q)
	}
	var oldest []Event
	for {
		page, err := a.o.Store.Events(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("tail events: %w", err)
		}
		if len(page) > 0 {
			oldest = page
		}
		if len(page) < q.Limit {
			slices.Reverse(oldest)
			return oldest, nil
		}
		q.Before = page[len(page)-1].Seq
	}
}

func (a *API) tailed(ctx context.Context, e Event, body bool) ([]byte, error) {
	if body {
		full, err := a.o.Store.Event(ctx, e.ID)
		switch {
		case err == nil:
			e = full
		case !fault.Is(err, fault.NotFound): // swept meanwhile: without its body, then
			return nil, fmt.Errorf("tail events: %w", err)
		}
	}
	data, err := a.encode(e) // one line, ended by \n
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %d\nevent: event\ndata: %s\n", e.Seq, data)
	return []byte(a.o.Redact.String(b.String())), nil
}
