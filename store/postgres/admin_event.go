package postgres

import (
	"context"
	"fmt"
	"strings"

	"leasehold/admin"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
)

const (
	defaultPage = 50
	maxPage     = 500
)

func page(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

const (
	eventColumns = `SELECT seq, event_id, installation_id, type, conversation, thread, occurred_at, accepted_at, epoch`
	sqlEvent1    = eventColumns + `, body FROM event WHERE seq = $1`
)

type eventRow struct {
	Seq            int64
	EventID        string `db:"event_id"`
	InstallationID string `db:"installation_id"`
	Type           string
	Conversation   string
	Thread         string
	OccurredAt     int64 `db:"occurred_at"`
	AcceptedAt     int64 `db:"accepted_at"`
	Epoch          int64
	Body           []byte
}

func (e *eventRow) event() admin.Event {
	return admin.Event{
		Seq: e.Seq, ID: eventid.Event(e.Seq), PlatformID: e.EventID, Installation: e.InstallationID, Type: e.Type,
		Conversation: e.Conversation, Thread: e.Thread, OccurredAt: fromMillis(e.OccurredAt), AcceptedAt: fromMillis(e.AcceptedAt),
		Epoch: e.Epoch, Body: e.Body,
	}
}

// eventQuery writes the statement for q: forwards from After by seq, backwards
// otherwise, by seq or, for one installation, through its index.
func eventQuery(q admin.EventQuery) (string, []any) {
	args := []any{}
	param := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	var where []string
	order := "DESC"
	if q.After > 0 {
		where, order = append(where, "seq > "+param(q.After)), "ASC"
	}
	if q.Before > 0 {
		where = append(where, "seq < "+param(q.Before))
	}
	if q.Installation != "" {
		where = append(where, "installation_id = "+param(q.Installation))
	}
	if q.Type != "" {
		where = append(where, "type = "+param([]byte(q.Type)))
	}
	filter := ""
	if len(where) > 0 {
		filter = " WHERE " + strings.Join(where, " AND ")
	}
	tail := " ORDER BY seq " + order + " LIMIT " + param(page(q.Limit))
	if q.Installation != "" && q.After == 0 && q.Type == "" {
		// Its newest are found in the index alone; by seq they may be far apart.
		return eventColumns + " FROM event WHERE seq = ANY(ARRAY(SELECT seq + 0 FROM event" + filter + " ORDER BY seq + 0 DESC LIMIT " +
			fmt.Sprintf("$%d", len(args)) + "))" + " ORDER BY seq DESC", args
	}
	return eventColumns + " FROM event" + filter + tail, args
}

// Events implements admin.Store.
func (r *reads) Events(ctx context.Context, q admin.EventQuery) ([]admin.Event, error) {
	query, args := eventQuery(q)
	var rows []eventRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, failed("list events", r.kind(err))
	}
	events := make([]admin.Event, 0, len(rows))
	seqs := make([]int64, 0, len(rows))
	for i := range rows {
		events = append(events, rows[i].event())
		seqs = append(seqs, rows[i].Seq)
	}
	journeys, err := r.journeys(ctx, seqs)
	if err != nil {
		return nil, failed("list events", r.kind(err))
	}
	for i := range events {
		events[i].Deliveries = journeys[events[i].Seq]
	}
	return events, nil
}

// Event implements admin.Store.
func (r *reads) Event(ctx context.Context, id string) (admin.Event, error) {
	seq, ok := eventid.Seq(id)
	if !ok {
		return admin.Event{}, noEvent(id)
	}
	var rows []eventRow
	if err := r.db.SelectContext(ctx, &rows, sqlEvent1, seq); err != nil {
		return admin.Event{}, failed("read event "+id, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.Event{}, noEvent(id)
	}
	journeys, err := r.journeys(ctx, []int64{seq})
	if err != nil {
		return admin.Event{}, failed("read event "+id, r.kind(err))
	}
	e := rows[0].event()
	e.Deliveries = journeys[seq]
	return e, nil
}

func noEvent(id string) error {
	return fault.Errorf(fault.NotFound, "there is no event %s: it may be past its retention", id)
}

// journeys returns the deliveries of the events, by seq.
func (r *reads) journeys(ctx context.Context, seqs []int64) (map[int64][]admin.Delivery, error) {
	var rows []deliveryRow
	query := deliveryColumns + deliveryJoin + ` WHERE d.event_seq = ANY($1) ORDER BY d.event_seq, d.target`
	if err := r.db.SelectContext(ctx, &rows, query, seqs); err != nil {
		return nil, err
	}
	journeys := map[int64][]admin.Delivery{}
	for i := range rows {
		journeys[rows[i].EventSeq] = append(journeys[rows[i].EventSeq], rows[i].delivery())
	}
	return journeys, nil
}
