package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"leasehold/admin"
	"leasehold/delivery"
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
	// No index knows when something ended or was accepted: the deliveries are walked
	// in the order of their events, and each is told whether it is one of those.
	sqlReplayable = `SELECT d.event_seq, d.target, d.lease_id, d.webhook_id, d.state, d.attempts, d.next_attempt, d.ended_at, d.last_error, d.replay, e.installation_id,
       d.state <> 0 AND ($3::text = '' OR e.installation_id = $3) AND ($4::bytea = ''::bytea OR e.type = $4)
   AND (e.accepted_at >= $5 AND e.accepted_at < $6 OR d.ended_at >= $5 AND d.ended_at < $6)
   AND d.lease_id IN (SELECT id FROM lease) AS chosen
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.event_seq > $1 AND d.target = $2 ORDER BY d.event_seq LIMIT $7`
)

// Replayable implements admin.Store.
func (r *reads) Replayable(ctx context.Context, q admin.ReplayQuery) (found []admin.Delivery, next int64, err error) {
	var rows []struct {
		deliveryRow
		Chosen bool
	}
	limit := page(q.Limit)
	err = r.db.SelectContext(ctx, &rows, sqlReplayable, q.After, q.Target, q.Installation, []byte(q.Type), toMillis(q.Since), toMillis(q.Until), limit)
	if err != nil {
		return nil, 0, failed("list what can be replayed", r.kind(err))
	}
	for i := range rows {
		if rows[i].Chosen {
			found = append(found, rows[i].delivery())
		}
	}
	if len(rows) == limit {
		next = rows[limit-1].EventSeq
	}
	return found, next, nil
}

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
			var d deliveryRow
			err := row.Scan(&d.EventSeq, &d.Target, &d.LeaseID, &d.WebhookID, &d.State, &d.Attempts, &d.NextAttempt, &d.EndedAt, &d.LastError, &d.Replay, &d.InstallationID)
			c.wake = "delivery"
			return d.delivery(), err
		})
	})
	return waiting, failed("replay deliveries", err)
}
