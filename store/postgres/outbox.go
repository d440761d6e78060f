package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"leasehold/delivery"
	"leasehold/internal/eventid"
	"leasehold/store/internal/record"
)

const (
	sqlPending = `SELECT d.event_seq AS seq, d.target, e.installation_id AS installation, e.conversation, e.thread, e.type,
       d.webhook_id, d.attempts, d.next_attempt, e.accepted_at, d.replay
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.state = 0 AND d.lease_id = $1 AND (d.event_seq, d.target) > ($2, $3)
 ORDER BY d.event_seq, d.target LIMIT $4`
	sqlEventsOf = `SELECT e.seq, e.installation_id AS installation, coalesce(i.type, '') AS channel_type, coalesce(i.labels, '{}') AS labels,
       e.accepted_at, e.body
  FROM event e LEFT JOIN installation i ON i.id = e.installation_id
 WHERE e.seq = ANY($1)`
)

// Pending implements delivery.Outbox.
func (r *reads) Pending(ctx context.Context, lease string, afterSeq int64, afterTarget string, limit int) ([]delivery.Item, error) {
	var rows []struct {
		Seq                                int64
		Target, Installation, Conversation string
		Thread, Type                       string
		WebhookID                          string `db:"webhook_id"`
		Attempts                           int
		NextAttempt                        int64 `db:"next_attempt"`
		AcceptedAt                         int64 `db:"accepted_at"`
		Replay                             bool
	}
	if err := r.db.SelectContext(ctx, &rows, sqlPending, lease, afterSeq, afterTarget, limit); err != nil {
		return nil, failed("list what waits for "+lease, r.kind(err))
	}
	items := make([]delivery.Item, 0, len(rows))
	for _, d := range rows {
		items = append(items, delivery.Item{
			Seq: d.Seq, Target: d.Target, Installation: d.Installation, Conversation: d.Conversation, Thread: d.Thread, Type: d.Type,
			WebhookID: d.WebhookID, Attempts: d.Attempts, NextAttempt: record.Time(d.NextAttempt), AcceptedAt: record.Time(d.AcceptedAt), Replay: d.Replay,
		})
	}
	return items, nil
}

// Payloads implements delivery.Outbox.
func (r *reads) Payloads(ctx context.Context, seqs []int64) ([]delivery.Event, error) {
	var rows []struct {
		Seq          int64
		Installation string
		ChannelType  string `db:"channel_type"`
		Labels       string
		AcceptedAt   int64 `db:"accepted_at"`
		Body         []byte
	}
	if err := r.db.SelectContext(ctx, &rows, sqlEventsOf, seqs); err != nil {
		return nil, failed("read events", r.kind(err))
	}
	events := make([]delivery.Event, 0, len(rows))
	for _, row := range rows {
		e := delivery.Event{
			Seq: row.Seq, ID: eventid.Event(row.Seq), Installation: row.Installation, ChannelType: row.ChannelType,
			AcceptedAt: record.Time(row.AcceptedAt), Body: row.Body,
		}
		if row.Labels != "{}" {
			if err := json.Unmarshal([]byte(row.Labels), &e.Labels); err != nil {
				return nil, fmt.Errorf("read events: labels of %s: %w", row.Installation, err)
			}
		}
		events = append(events, e)
	}
	return events, nil
}
