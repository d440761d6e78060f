package record

import (
	"context"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
)

const (
	// EventColumns begins a statement for events without their bodies.
	EventColumns = `SELECT seq, event_id, installation_id, type, conversation, thread, occurred_at, accepted_at, epoch`
	sqlEvent1    = EventColumns + `, body FROM event WHERE seq = $1`
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
		Conversation: e.Conversation, Thread: e.Thread, OccurredAt: Time(e.OccurredAt), AcceptedAt: Time(e.AcceptedAt),
		Epoch: e.Epoch, Body: e.Body,
	}
}

// Events implements admin.Store.
func (r *Reads) Events(ctx context.Context, q admin.EventQuery) ([]admin.Event, error) {
	q.Limit = page(q.Limit)
	query, args := r.d.Events(q)
	var rows []eventRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("list events: %w", r.kind(err))
	}
	events := make([]admin.Event, 0, len(rows))
	seqs := make([]int64, 0, len(rows))
	for i := range rows {
		events = append(events, rows[i].event())
		seqs = append(seqs, rows[i].Seq)
	}
	journeys, err := r.journeys(ctx, seqs)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", r.kind(err))
	}
	for i := range events {
		events[i].Deliveries = journeys[events[i].Seq]
	}
	return events, nil
}

// Event implements admin.Store.
func (r *Reads) Event(ctx context.Context, id string) (admin.Event, error) {
	seq, ok := eventid.Seq(id)
	if !ok {
		return admin.Event{}, noEvent(id)
	}
	var rows []eventRow
	if err := r.db.SelectContext(ctx, &rows, sqlEvent1, seq); err != nil {
		return admin.Event{}, fmt.Errorf("read event %s: %w", id, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.Event{}, noEvent(id)
	}
	journeys, err := r.journeys(ctx, []int64{seq})
	if err != nil {
		return admin.Event{}, fmt.Errorf("read event %s: %w", id, r.kind(err))
	}
	e := rows[0].event()
	e.Deliveries = journeys[seq]
	return e, nil
}

func noEvent(id string) error {
	return fault.Errorf(fault.NotFound, "there is no event %s: it may be past its retention", id)
}

// journeys returns the deliveries of the events, by seq.
func (r *Reads) journeys(ctx context.Context, seqs []int64) (map[int64][]admin.Delivery, error) {
	list, err := r.d.Seqs(seqs)
	if err != nil {
		return nil, err
	}
	var rows []DeliveryRow
	if err := r.db.SelectContext(ctx, &rows, r.d.Journeys, list); err != nil {
		return nil, err
	}
	journeys := map[int64][]admin.Delivery{}
	for i := range rows {
		journeys[rows[i].EventSeq] = append(journeys[rows[i].EventSeq], rows[i].Delivery())
	}
	return journeys, nil
}
