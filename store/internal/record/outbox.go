package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"leasehold/delivery"
	"leasehold/internal/eventid"
)

const (
	sqlPending = `SELECT d.event_seq AS seq, d.target, e.installation_id AS installation, e.conversation, e.thread, e.type,
       d.webhook_id, d.attempts, d.next_attempt, e.accepted_at, d.replay
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.state = 0 AND d.lease_id = $1 AND (d.event_seq, d.target) > ($2, $3)
 ORDER BY d.event_seq, d.target LIMIT $4`
	// PayloadColumns begins the statement for what is sent of events.
	PayloadColumns = `SELECT e.seq, e.installation_id AS installation, coalesce(i.type, '') AS channel_type, coalesce(i.labels, '{}') AS labels,
       e.accepted_at, e.body
  FROM event e LEFT JOIN installation i ON i.id = e.installation_id`
)

// Pending implements delivery.Outbox. It scans row by row: reflection would be a
// third of what a row of a backlog costs.
func (r *Reads) Pending(ctx context.Context, lease string, afterSeq int64, afterTarget string, limit int) (items []delivery.Item, err error) {
	defer func() {
		if err != nil {
			items, err = nil, fmt.Errorf("list what waits for %s: %w", lease, r.kind(err))
		}
	}()
	rows, err := r.often(ctx, sqlPending, lease, afterSeq, afterTarget, limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	items = []delivery.Item{}
	var d delivery.Item // one for all rows: what is scanned into escapes
	var next, accepted int64
	for rows.Next() {
		err := rows.Scan(&d.Seq, &d.Target, &d.Installation, &d.Conversation, &d.Thread, &d.Type, &d.WebhookID, &d.Attempts, &next, &accepted, &d.Replay)
		if err != nil {
			return nil, err
		}
		d.NextAttempt, d.AcceptedAt = Time(next), Time(accepted)
		items = append(items, d)
	}
	return items, rows.Err()
}

// Payloads implements delivery.Outbox.
func (r *Reads) Payloads(ctx context.Context, seqs []int64) (events []delivery.Event, err error) {
	list, err := r.d.Seqs(seqs)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	rows, err := r.often(ctx, r.d.Payloads, list)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", r.kind(err))
	}
	defer func() {
		if err = errors.Join(err, rows.Close()); err != nil {
			events, err = nil, fmt.Errorf("read events: %w", r.kind(err))
		}
	}()
	return scanEvents(rows, make([]delivery.Event, 0, len(seqs)))
}

func scanEvents(rows *sql.Rows, events []delivery.Event) ([]delivery.Event, error) {
	var e delivery.Event // one for all rows: what is scanned into escapes
	var labels string
	var accepted int64
	for rows.Next() {
		e = delivery.Event{}
		if err := rows.Scan(&e.Seq, &e.Installation, &e.ChannelType, &labels, &accepted, &e.Body); err != nil {
			return nil, err
		}
		e.ID, e.AcceptedAt = eventid.Event(e.Seq), Time(accepted)
		if labels != "{}" {
			if err := json.Unmarshal([]byte(labels), &e.Labels); err != nil {
				return nil, fmt.Errorf("labels of %s: %w", e.Installation, err)
			}
		}
		events = append(events, e)
	}
	return events, rows.Err()
}
