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

const (
	// tailEvery is how often a tail looks for new events: soon enough for eyes, and
	// an indexed read of nothing is some microseconds.
	tailEvery = 200 * time.Millisecond
	// tailAlive is how often a silent tail says that it lives, so that proxies and
	// readers with a time-out keep it.
	tailAlive = 15 * time.Second
	// tailWrite bounds one write to a reader that does not read.
	tailWrite = 10 * time.Second
)

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
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	ctx, cancel := streaming(r)
	defer cancel()
	a.stream(ctx, w, e, from, body)
	return nil
}

// stream writes until ctx ends or the reader is gone. A store that fails ends it,
// too: the reader comes back with its Last-Event-ID and is told why.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, q EventQuery, from int64, body bool) {
	out := http.NewResponseController(w)
	send := func(b []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(tailWrite)) // a writer without deadlines is in this process
		a.write(w, b)
		return out.Flush() == nil
	}
	if !send([]byte(": leasehold\n\n")) {
		return
	}
	for quiet := time.Duration(0); ; {
		events, err := a.since(ctx, q, from)
		if err != nil {
			return
		}
		for _, e := range events {
			b, err := a.tailed(ctx, e, body)
			if err != nil || !send(b) {
				return
			}
			from, quiet = e.Seq, 0
		}
		if len(events) > 0 {
			continue // there may be more
		}
		if quiet += tailEvery; quiet >= tailAlive {
			if quiet = 0; !send([]byte(":\n\n")) {
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
	return b.Bytes(), nil
}
