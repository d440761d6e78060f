package postgres

import (
	"context"

	"leasehold/store/maintenance"
)

const (
	waitingEvents = `(SELECT event_seq FROM delivery WHERE state = 0 GROUP BY lease_id, event_seq)`
	sqlWaiting    = `SELECT count(*), coalesce(sum(octet_length(e.body)), 0)::bigint FROM ` + waitingEvents + ` d JOIN event e ON e.seq = d.event_seq`
	// The oldest whose bodies together are as large as is asked: each whose predecessors
	// are not enough yet.
	sqlGiveWay = `WITH oldest AS MATERIALIZED (
  SELECT e.seq, e.lease_id, octet_length(e.body) AS bytes FROM ` + waitingEvents + ` d JOIN event e ON e.seq = d.event_seq ORDER BY e.seq LIMIT $1
), enough AS MATERIALIZED (
  SELECT seq, lease_id, bytes FROM (SELECT seq, lease_id, bytes, sum(bytes) OVER (ORDER BY seq) - bytes AS before FROM oldest) o WHERE before < $2
), gone AS (
  UPDATE delivery d SET state = 3, ended_at = $3, last_error = $4 FROM enough WHERE d.event_seq = enough.seq AND d.state = 0 RETURNING 1
)
SELECT (SELECT count(*) FROM enough), (SELECT count(*) FROM gone), (SELECT coalesce(sum(bytes), 0)::bigint FROM enough),
       ARRAY(SELECT DISTINCT lease_id FROM enough ORDER BY 1)`
)

// giveWayBatch is the events of one transaction that give way.
const giveWayBatch = 1000

// Waiting implements store.Store.
func (r *reads) Waiting(ctx context.Context) (maintenance.Waiting, error) {
	var w maintenance.Waiting
	if err := r.db.QueryRowContext(ctx, sqlWaiting).Scan(&w.Events, &w.Bytes); err != nil {
		return w, failed("measure what waits", r.kind(err))
	}
	return w, nil
}

// GiveWay implements store.Store.
func (s *Store) GiveWay(ctx context.Context, bytes int64, reason string) (maintenance.GivenUp, error) {
	given, err := change(ctx, s, func(ctx context.Context, c *changing) (g maintenance.GivenUp, err error) {
		_, err = c.Get(ctx, sqlGiveWay, []any{giveWayBatch, bytes, c.now, reason}, &g.Events, &g.Deliveries, &g.Bytes, &g.Leases)
		if g.Events > 0 {
			c.wake = "delivery"
		}
		return g, err
	})
	return given, failed("let the oldest deliveries give way", err)
}
