package postgres

import (
	"context"
	"errors"

	"leasehold/internal/loop"
	"leasehold/store/maintenance"
)

const (
	// Events are looked at in the order of their seqs, which is nearly that of their
	// ages, so that no index is written for the sweeper's sake.
	sqlOldEvents = `SELECT e.seq, e.accepted_at < $2 AND NOT EXISTS (
         SELECT 1 FROM delivery d WHERE d.event_seq = e.seq AND (d.state = 0 OR (d.state = 2 AND ($3::bigint = 0 OR d.ended_at >= $3)))),
       e.accepted_at >= $2
  FROM event e WHERE e.seq > $1 ORDER BY e.seq LIMIT $4`
	// A dead letter may be replayed meanwhile: the deliveries are locked before it is
	// asked once more what waits, and whoever replays one afterwards finds it gone. What
	// another sweeper has in its hands is left to it.
	sqlLockDeliveries = `SELECT 1 FROM delivery WHERE event_seq = ANY($1) ORDER BY event_seq, target FOR UPDATE`
	sqlSweepEvents    = `WITH old AS MATERIALIZED (SELECT seq FROM event WHERE seq = ANY($1)
   AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_seq = event.seq AND d.state = 0) ORDER BY seq FOR UPDATE SKIP LOCKED)
DELETE FROM event e USING old WHERE e.seq = old.seq`
	sqlSweepDeliveries = `DELETE FROM delivery WHERE event_seq = ANY($1) AND NOT EXISTS (SELECT 1 FROM event e WHERE e.seq = delivery.event_seq)`

	removedAndDone = ` FROM installation WHERE removed
   AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.id = installation.id AND l.owner IN (SELECT session_id FROM session))
   AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.state = 0 AND d.lease_id = installation.id)
   AND NOT EXISTS (SELECT 1 FROM delivery d JOIN event e ON e.seq = d.event_seq
                    WHERE installation.via <> '' AND d.state = 0 AND d.lease_id = installation.via AND e.installation_id = installation.id)`
	sqlDoneInstallations = `SELECT id` + removedAndDone + ` ORDER BY id LIMIT $1`
	// The lease is locked before it is asked whether somebody holds it.
	sqlLockLease         = `SELECT 1 FROM lease WHERE id = $1 FOR UPDATE`
	sqlSweepInstallation = `DELETE` + removedAndDone + ` AND id = $1`
)

// tablesOf are those with rows that belong to an installation, by their key.
var tablesOf = []string{
	`DELETE FROM lease WHERE id = $1`, `DELETE FROM cursor WHERE lease_id = $1`,
	`DELETE FROM link_status WHERE installation_id = $1`, `DELETE FROM connect_budget WHERE lease_id = $1`,
}

// Sweep deletes what is past its retention, by the database's clock: events with
// nothing that waits, their deliveries, messages that are done, and removed
// installations whose backlog is delivered. A message whose time is over and whose
// lease nobody holds expires. Each batch is a transaction of its own with a pause
// behind it; a sweep beside another one, or after one that was cut short, does what
// is left. One table that fails does not stop the others. A cycle that finds
// nothing writes nothing.
func (s *Store) Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
	r = r.Defaults()
	var swept maintenance.Swept
	err := errors.Join(
		failed("sweep events", s.sweepEvents(ctx, r, &swept)),
		failed("sweep installations", s.sweepInstallations(ctx, r, &swept)),
		failed("sweep messages", s.sweepMessages(ctx, r, &swept)),
	)
	return swept, err
}

func (s *Store) sweepEvents(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	if r.Events <= 0 {
		return nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	dead := int64(0)
	if r.Dead > 0 {
		dead = now - r.Dead.Milliseconds()
	}
	for after, looked := int64(0), 0; ; {
		if looked >= r.Budget {
			swept.More = true
			return nil
		}
		page, err := s.oldPage(ctx, r.Batch, sqlOldEvents, after, now-r.Events.Milliseconds(), dead, r.Batch)
		if err != nil {
			return err
		}
		if len(page.seqs) > 0 {
			if err := s.deleteEvents(ctx, page.seqs, swept); err != nil {
				return err
			}
		}
		if page.end {
			return nil
		}
		after, looked = page.last, looked+r.Batch
		if len(page.seqs) > 0 {
			if err := loop.Sleep(ctx, r.Pause); err != nil {
				return err
			}
		}
	}
}

func (s *Store) deleteEvents(ctx context.Context, seqs []int64, swept *maintenance.Swept) error {
	gone, err := write(ctx, s, func(ctx context.Context) (n [2]int64, err error) {
		err = s.atomically(
			ctx, s.pool,
			step{sql: sqlLockDeliveries, args: []any{seqs}},
			step{sql: sqlSweepEvents, args: []any{seqs}, n: &n[0]},
			step{sql: sqlSweepDeliveries, args: []any{seqs}, n: &n[1]},
		)
		return n, err
	})
	swept.Events += int(gone[0])
	swept.Deliveries += int(gone[1])
	return err
}

func (s *Store) sweepInstallations(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	for looked := 0; looked < r.Budget; {
		var ids []string
		if err := s.db.SelectContext(ctx, &ids, sqlDoneInstallations, r.Batch); err != nil {
			return s.kind(err)
		}
		if len(ids) == 0 {
			return nil
		}
		deleted, err := change(ctx, s, func(ctx context.Context, c *changing) (int, error) { return c.sweep(ctx, ids) })
		if err != nil {
			return err
		}
		swept.Installations += deleted
		looked += len(ids)
		if err := loop.Sleep(ctx, r.Pause); err != nil {
			return err
		}
	}
	swept.More = true
	return nil
}

// sweep deletes removed installations with what belongs to them. It returns how
// many: somebody may have brought one back.
func (c *changing) sweep(ctx context.Context, ids []string) (deleted int, err error) {
	for _, id := range ids {
		if _, err := c.Exec(ctx, sqlLockLease, id); err != nil {
			return 0, err
		}
		n, err := c.Exec(ctx, sqlSweepInstallation, id)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			continue
		}
		deleted++
		for _, query := range tablesOf {
			if _, err := c.Exec(ctx, query, id); err != nil {
				return 0, err
			}
		}
	}
	return deleted, nil
}
