package sqlite

import (
	"context"
	"database/sql"

	"leasehold/admin"
	"leasehold/internal/eventid"
	"leasehold/store/internal/record"
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
	sqlDrop = `UPDATE delivery SET state = 3, ended_at = $3 WHERE event_seq = $1 AND webhook_id = $2 AND state IN (0, 2)`
)

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
				var d record.DeliveryRow
				err := rows.Scan(&d.EventSeq, &d.Target, &d.LeaseID, &d.WebhookID, &d.State, &d.Attempts, &d.NextAttempt, &d.EndedAt, &d.LastError, &d.Replay, &d.InstallationID)
				waiting = append(waiting, d.Delivery())
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

// DropDeliveries implements admin.Store.
func (s *Store) DropDeliveries(ctx context.Context, ids []string) (int, error) {
	var dropped int64
	err := s.c.do(ctx, func(w *writer) error {
		for _, id := range ids {
			seq, ok := eventid.WebhookSeq(id)
			if !ok {
				continue
			}
			n, err := w.affected(sqlDrop, seq, id, w.now)
			if err != nil {
				return err
			}
			dropped += n
		}
		w.bump, w.wake = dropped > 0, dropped > 0
		return nil
	})
	if err != nil {
		return 0, failed("drop deliveries", err)
	}
	return int(dropped), nil
}
