package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/eventid"
	"leasehold/store/internal/record"
)

const (
	// Locked in the order of events, whatever the order of ids. Without a lease nobody
	// would ever deliver it: its installation is swept.
	sqlReplay = `WITH d AS MATERIALIZED (SELECT d.event_seq, d.target FROM delivery d
  JOIN unnest($1::bigint[], $2::text[]) AS w(seq, id) ON d.event_seq = w.seq AND d.webhook_id = w.id
 WHERE d.state = ANY($3::smallint[]) AND d.lease_id IN (SELECT id FROM lease) ORDER BY d.event_seq, d.target FOR UPDATE OF d),
u AS (UPDATE delivery u SET state = 0, attempts = 0, next_attempt = leasehold_now(), ended_at = 0, replay = true
  FROM d WHERE u.event_seq = d.event_seq AND u.target = d.target AND u.state = ANY($3::smallint[])
RETURNING u.event_seq, u.target, u.lease_id, u.webhook_id, u.state, u.attempts, u.next_attempt, u.ended_at, u.last_error, u.replay)
SELECT u.*, e.installation_id FROM u JOIN event e ON e.seq = u.event_seq ORDER BY u.event_seq, u.target`
	sqlReplaying = `SELECT DISTINCT lease_id FROM delivery WHERE state = 0 AND replay ORDER BY lease_id`
	// Locked in the order of events, whatever the order of ids.
	sqlDrop = `WITH d AS MATERIALIZED (SELECT d.event_seq, d.target FROM delivery d
  JOIN unnest($1::bigint[], $2::text[]) AS w(seq, id) ON d.event_seq = w.seq AND d.webhook_id = w.id
 WHERE d.state IN (0, 2) ORDER BY d.event_seq, d.target FOR UPDATE OF d)
UPDATE delivery u SET state = 3, ended_at = leasehold_now()
  FROM d WHERE u.event_seq = d.event_seq AND u.target = d.target AND u.state IN (0, 2)`
)

// Replaying lists the leases under which replays wait: somebody asked for them on one
// node, and another one may hold the lease.
func (r *reads) Replaying(ctx context.Context) ([]string, error) {
	var leases []string
	if err := r.db.SelectContext(ctx, &leases, sqlReplaying); err != nil {
		return nil, failed("list leases with replays", r.kind(err))
	}
	return leases, nil
}

// ReplayDeliveries implements admin.Store. Those whose installation was swept
// are skipped, too: nobody would deliver them.
func (s *Store) ReplayDeliveries(ctx context.Context, ids []string) ([]admin.Delivery, error) {
	return s.replay(ctx, ids, delivery.Dead, delivery.Dropped)
}

// RedeliverDeliveries implements admin.Store.
func (s *Store) RedeliverDeliveries(ctx context.Context, ids []string) ([]admin.Delivery, error) {
	return s.replay(ctx, ids, delivery.Delivered, delivery.Dead, delivery.Dropped)
}

func (s *Store) replay(ctx context.Context, ids []string, from ...delivery.State) ([]admin.Delivery, error) {
	seqs, known := numbered(ids)
	states := make([]int16, 0, len(from))
	for _, state := range from {
		states = append(states, int16(state))
	}
	waiting, err := change(ctx, s, func(ctx context.Context, c *changing) ([]admin.Delivery, error) {
		rows, err := c.conn.Query(ctx, sqlReplay, seqs, known, states)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (admin.Delivery, error) {
			var d record.DeliveryRow
			err := row.Scan(&d.EventSeq, &d.Target, &d.LeaseID, &d.WebhookID, &d.State, &d.Attempts, &d.NextAttempt, &d.EndedAt, &d.LastError, &d.Replay, &d.InstallationID)
			c.wake = "delivery"
			return d.Delivery(), err
		})
	})
	return waiting, failed("replay deliveries", err)
}

// numbered are the webhook ids that could be ones, with their events.
func numbered(ids []string) (seqs []int64, known []string) {
	for _, id := range ids {
		if seq, ok := eventid.WebhookSeq(id); ok {
			seqs, known = append(seqs, seq), append(known, id)
		}
	}
	return seqs, known
}

// DropDeliveries implements admin.Store.
func (s *Store) DropDeliveries(ctx context.Context, ids []string) (int, error) {
	seqs, known := numbered(ids)
	dropped, err := change(ctx, s, func(ctx context.Context, c *changing) (int64, error) {
		n, err := c.Exec(ctx, sqlDrop, seqs, known)
		if n > 0 {
			c.wake = "delivery"
		}
		return n, err
	})
	return int(dropped), failed("drop deliveries", err)
}
