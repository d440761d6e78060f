package sqlite

import (
	"context"
	"database/sql"

	"leasehold/admin"
	"leasehold/internal/eventid"
)

const (
	// Without a lease nobody would ever deliver it: its installation is swept.
	sqlReplay = `UPDATE delivery SET state = 0, attempts = 0, next_attempt = $3, ended_at = 0, replay = 1
 WHERE event_seq = $1 AND webhook_id = $2 AND state IN (2, 3)` + replayed
	sqlRedeliver = `UPDATE delivery SET state = 0, attempts = 0, next_attempt = $3, ended_at = 0, replay = 1
 WHERE event_seq = $1 AND webhook_id = $2 AND state IN (1, 2, 3)` + replayed
	replayed = ` AND lease_id IN (SELECT id FROM lease)
RETURNING event_seq, target, lease_id, webhook_id, state, attempts, next_attempt, ended_at, last_error, replay,
          (SELECT e.installation_id FROM event e WHERE e.seq = event_seq) AS installation_id`
	// No index knows when something ended or was accepted: the deliveries are walked
	// in the order of their events, and each is told whether it is one of those.
	sqlReplayable = `SELECT d.event_seq, d.target, d.lease_id, d.webhook_id, d.state, d.attempts, d.next_attempt, d.ended_at, d.last_error, d.replay, e.installation_id,
       d.state <> 0 AND ($3 = '' OR e.installation_id = $3) AND ($4 = '' OR e.type = $4)
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
	err = r.db.SelectContext(ctx, &rows, sqlReplayable, q.After, q.Target, q.Installation, q.Type, toMillis(q.Since), toMillis(q.Until), limit)
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

// ReplayDeliveries implements admin.Store. Those whose installation was swept
// are skipped, too: nobody would deliver them.
func (s *Store) ReplayDeliveries(ctx context.Context, ids []string) ([]admin.Delivery, error) {
	return s.replay(ctx, sqlReplay, ids)
}

// RedeliverDeliveries implements admin.Store.
func (s *Store) RedeliverDeliveries(ctx context.Context, ids []string) ([]admin.Delivery, error) {
	return s.replay(ctx, sqlRedeliver, ids)
}

func (s *Store) replay(ctx context.Context, query string, ids []string) ([]admin.Delivery, error) {
	var waiting []admin.Delivery
	err := s.c.do(ctx, func(w *writer) error {
		for _, id := range ids {
			seq, ok := eventid.WebhookSeq(id)
			if !ok {
				continue
			}
			err := w.each(query, []any{seq, id, w.now}, func(rows *sql.Rows) error {
				var d deliveryRow
				err := rows.Scan(&d.EventSeq, &d.Target, &d.LeaseID, &d.WebhookID, &d.State, &d.Attempts, &d.NextAttempt, &d.EndedAt, &d.LastError, &d.Replay, &d.InstallationID)
				waiting = append(waiting, d.delivery())
				return err
			})
			if err != nil {
				return err
			}
		}
		w.bump, w.wake = len(waiting) > 0, len(waiting) > 0
		return nil
	})
	if err != nil {
		return nil, failed("replay deliveries", err)
	}
	return waiting, nil
}
