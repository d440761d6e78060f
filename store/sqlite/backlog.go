package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"leasehold/store/maintenance"
)

const (
	// An event's deliveries stand together in the index, since they are of one lease.
	waitingEvents = `(SELECT event_seq FROM delivery INDEXED BY delivery_pending WHERE state = 0 GROUP BY lease_id, event_seq)`
	// length asks for the size of a body and does not read it.
	sqlWaiting = `SELECT count(*), coalesce(sum(length(e.body)), 0) FROM ` + waitingEvents + ` d JOIN event e ON e.seq = d.event_seq`
	sqlOldest  = `SELECT e.seq, e.lease_id, length(e.body) FROM ` + waitingEvents + ` d JOIN event e ON e.seq = d.event_seq ORDER BY e.seq LIMIT $1`
	sqlGiveWay = `UPDATE delivery SET state = 3, ended_at = $2, last_error = $3 WHERE event_seq = $1 AND state = 0`
)

// giveWayBatch is the events of one transaction that give way: some 20 ms of the
// write lock.
const giveWayBatch = 1000

// Waiting implements store.Store. It reads an entry of an index and the head of a row
// for each event that waits: a million take about a second.
func (r *reads) Waiting(ctx context.Context) (maintenance.Waiting, error) {
	var w maintenance.Waiting
	if err := r.db.QueryRowContext(ctx, sqlWaiting).Scan(&w.Events, &w.Bytes); err != nil {
		return w, failed("measure what waits", r.kind(err))
	}
	return w, nil
}

// GiveWay implements store.Store.
func (s *Store) GiveWay(ctx context.Context, bytes int64, reason string) (maintenance.GivenUp, error) {
	var g maintenance.GivenUp
	err := s.c.do(ctx, func(w *writer) error {
		g = maintenance.GivenUp{}
		type oldest struct {
			seq, bytes int64
			lease      string
		}
		var all []oldest
		err := w.each(sqlOldest, []any{giveWayBatch}, func(rows *sql.Rows) error {
			var o oldest
			err := rows.Scan(&o.seq, &o.lease, &o.bytes)
			all = append(all, o)
			return err
		})
		if err != nil {
			return err
		}
		for _, o := range all {
			if g.Bytes >= bytes {
				break
			}
			n, err := w.affected(sqlGiveWay, o.seq, w.now, reason)
			if err != nil {
				return err
			}
			g.Events++
			g.Deliveries += int(n)
			g.Bytes += o.bytes
			g.Leases = append(g.Leases, o.lease)
		}
		w.bump, w.wake = g.Events > 0, g.Events > 0
		return nil
	})
	if err != nil {
		return maintenance.GivenUp{}, failed("let the oldest deliveries give way", err)
	}
	slices.Sort(g.Leases)
	g.Leases = slices.Compact(g.Leases)
	return g, nil
}
