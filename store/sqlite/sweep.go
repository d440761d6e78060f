package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"leasehold/internal/loop"
	"leasehold/store/maintenance"
)

const (
	// Events are looked at in the order of their seqs, which is that of their ages,
	// so that no index is written for the sweeper's sake.
	sqlOldEvents = `SELECT e.seq, e.accepted_at < $2 AND NOT EXISTS (
         SELECT 1 FROM delivery d WHERE d.event_seq = e.seq AND (d.state = 0 OR (d.state = 2 AND ($3 = 0 OR d.ended_at >= $3)))),
       e.accepted_at >= $2
  FROM event e WHERE e.seq > $1 ORDER BY e.seq LIMIT $4`
	// Asked once more in the transaction that deletes: a dead letter may have been
	// replayed meanwhile.
	sqlSweepEvents = `DELETE FROM event WHERE seq IN (SELECT value FROM json_each($1))
   AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_seq = event.seq AND d.state = 0)`
	sqlSweepDeliveries = `DELETE FROM delivery WHERE event_seq IN (SELECT value FROM json_each($1))
   AND NOT EXISTS (SELECT 1 FROM event e WHERE e.seq = delivery.event_seq)`

	removedAndDone = ` FROM installation WHERE removed = 1
   AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.id = installation.id AND l.owner IN (SELECT session_id FROM session))
   AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.state = 0 AND d.lease_id = installation.id)
   AND NOT EXISTS (SELECT 1 FROM delivery d JOIN event e ON e.seq = d.event_seq
                    WHERE installation.via <> '' AND d.state = 0 AND d.lease_id = installation.via AND e.installation_id = installation.id)`
	sqlDoneInstallations  = `SELECT id` + removedAndDone + ` ORDER BY id LIMIT $1`
	sqlSweepInstallations = `DELETE` + removedAndDone + ` AND id = $1`
)

// tablesOf are those with rows that belong to an installation, by their key.
var tablesOf = []string{
	`DELETE FROM lease WHERE id = $1`, `DELETE FROM cursor WHERE lease_id = $1`,
	`DELETE FROM link_status WHERE installation_id = $1`, `DELETE FROM connect_budget WHERE lease_id = $1`,
}

// Sweep deletes what is past its retention, by the store's clock: events with
// nothing that waits, their deliveries, messages that are done, and removed
// installations whose backlog is delivered. A message whose time is over and whose
// lease nobody holds expires. Each batch is a transaction of its own with a pause behind it; a
// sweep beside another one, or after one that was cut short, does what is left.
// One table that fails does not stop the others. A cycle that finds nothing
// writes nothing. It works on a full disk once a Probe gave the reserve up.
func (s *Store) Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
	r = r.Defaults()
	s.retention.Store(&r) // for when the disk is full
	return s.sweep(ctx, r)
}

func (s *Store) sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
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
	now := s.opt.Now()
	cutoff, dead := now.Add(-r.Events).UnixMilli(), int64(0)
	if r.Dead > 0 {
		dead = now.Add(-r.Dead).UnixMilli()
	}
	for after, looked := int64(0), 0; ; {
		if looked >= r.Budget {
			swept.More = true
			return nil
		}
		page, err := s.oldPage(ctx, r.Batch, sqlOldEvents, after, cutoff, dead, r.Batch)
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
	list, err := json.Marshal(seqs)
	if err != nil {
		return err
	}
	var events, deliveries int64
	err = s.c.do(ctx, func(w *writer) (err error) {
		if events, err = w.affected(sqlSweepEvents, string(list)); err != nil {
			return err
		}
		deliveries, err = w.affected(sqlSweepDeliveries, string(list))
		return err
	})
	if err != nil {
		return err
	}
	swept.Events += int(events)
	swept.Deliveries += int(deliveries)
	return nil
}

func (s *Store) sweepInstallations(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	for looked := 0; looked < r.Budget; {
		var ids []string
		if err := s.db.SelectContext(ctx, &ids, sqlDoneInstallations, r.Batch); err != nil {
			return s.judge(err)
		}
		if len(ids) == 0 {
			return nil
		}
		var deleted int
		err := s.c.do(ctx, func(w *writer) error {
			deleted = 0
			for _, id := range ids {
				n, err := w.affected(sqlSweepInstallations, id)
				if err != nil {
					return err
				}
				if n == 0 {
					continue // somebody brought it back
				}
				deleted++
				for _, query := range tablesOf {
					if _, err := w.exec(query, id); err != nil {
						return err
					}
				}
			}
			w.bump = deleted > 0
			return nil
		})
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
