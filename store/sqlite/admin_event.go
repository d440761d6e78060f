package sqlite

import (
	"context"
	"encoding/json"

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
	limit := page(q.Limit)
	before := q.Before
	if before <= 0 {
		before = 1<<63 - 1
	}
	if q.After > 0 {
		return eventColumns + ` FROM event WHERE seq > $1 AND seq < $2 AND ($3 = '' OR installation_id = $3) AND ($4 = '' OR type = $4) ORDER BY seq LIMIT $5`,
			[]any{q.After, before, q.Installation, q.Type, limit}
	}
	if q.Installation != "" && q.Type == "" {
		return eventColumns + ` FROM event WHERE seq IN (
  SELECT seq FROM event INDEXED BY event_dedupe WHERE installation_id = $1 AND seq < $2 ORDER BY +seq DESC LIMIT $3) ORDER BY seq DESC`,
			[]any{q.Installation, before, limit}
	}
	if q.Installation != "" {
		return eventColumns + ` FROM event INDEXED BY event_dedupe WHERE installation_id = $1 AND seq < $2 AND type = $3 ORDER BY +seq DESC LIMIT $4`,
			[]any{q.Installation, before, q.Type, limit}
	}
	return eventColumns + ` FROM event WHERE seq < $1 AND ($2 = '' OR type = $2) ORDER BY seq DESC LIMIT $3`, []any{before, q.Type, limit}
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
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	var rows []deliveryRow
	query := deliveryColumns + deliveryJoin + ` WHERE d.event_seq IN (SELECT value FROM json_each($1)) ORDER BY d.event_seq, d.target`
	if err := r.db.SelectContext(ctx, &rows, query, string(list)); err != nil {
		return nil, err
	}
	journeys := map[int64][]admin.Delivery{}
	for i := range rows {
		journeys[rows[i].EventSeq] = append(journeys[rows[i].EventSeq], rows[i].delivery())
	}
	return journeys, nil
}
