package postgres

import (
	"context"

	"leasehold/delivery/outbound"
	"leasehold/store/internal/sweep"
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
	sqlSweepFollowUps  = `DELETE FROM follow_up WHERE event_seq = ANY($1) AND NOT EXISTS (SELECT 1 FROM event e WHERE e.seq = follow_up.event_seq)`
	sqlStaleFollowUps  = `SELECT event_seq FROM follow_up WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`
	sqlDropFollowUps   = `DELETE FROM follow_up WHERE event_seq = ANY($1)`

	removedAndDone = ` FROM installation WHERE removed
   AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.id = installation.id AND l.owner IN (SELECT session_id FROM session))
   AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.state = 0 AND d.lease_id = installation.id)
   AND NOT EXISTS (SELECT 1 FROM delivery d JOIN event e ON e.seq = d.event_seq
                    WHERE installation.via <> '' AND d.state = 0 AND d.lease_id = installation.via AND e.installation_id = installation.id)`
	sqlDoneInstallations = `SELECT id` + removedAndDone + ` ORDER BY id LIMIT $1`
	// The lease is locked before it is asked whether somebody holds it.
	sqlLockLease         = `SELECT 1 FROM lease WHERE id = $1 FOR UPDATE`
	sqlSweepInstallation = `DELETE` + removedAndDone + ` AND id = $1`

	// A message whose lease somebody holds is that one's to end.
	unheld = ` AND NOT EXISTS (SELECT 1 FROM lease l JOIN session s ON s.session_id = l.owner WHERE l.id = message.lease_id)`
	// What was being sent when its holder died may have been sent.
	sqlStranded  = `SELECT seq FROM message WHERE state < 2 AND expires_at <= $1` + unheld + ` ORDER BY seq LIMIT $2`
	sqlEndStrand = `UPDATE message SET state = CASE WHEN state = 1 OR doubt THEN 5 WHEN receipt <> '' THEN 3 ELSE 4 END, ended_at = $2,
       last_error = CASE WHEN state = 1 THEN $3 WHEN NOT doubt AND receipt <> '' THEN $4 ELSE last_error END
 WHERE seq = ANY($1::bigint[]) AND state < 2` + unheld

	// In the order of their seqs, so that two sweepers do not wait for each other.
	sqlLockMessages = `SELECT 1 FROM message WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE`

	// In the order of their seqs, which is nearly that of their ages.
	sqlOldMessages   = `SELECT seq, ended_at <> 0 AND ended_at < $2, created_at >= $2 FROM message WHERE seq > $1 ORDER BY seq LIMIT $3`
	sqlSweepMessages = `DELETE FROM message WHERE seq = ANY($1::bigint[]) AND state >= 2`

	sqlOldNotes = `SELECT seq, at < $2, at >= $2 FROM audit WHERE seq > $1 ORDER BY seq LIMIT $3`
	// Whoever notes a write deletes old ones, too: what another has in its hands is left
	// to it.
	sqlSweepNotes = `WITH old AS MATERIALIZED (SELECT seq FROM audit WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE SKIP LOCKED)
DELETE FROM audit a USING old WHERE a.seq = old.seq`
)

// tablesOf are those with rows that belong to an installation, by their key.
var tablesOf = []string{
	`DELETE FROM lease WHERE id = $1`, `DELETE FROM cursor WHERE lease_id = $1`,
	`DELETE FROM link_status WHERE installation_id = $1`, `DELETE FROM connect_budget WHERE lease_id = $1`,
}

// Sweep implements store.Store, by the database's clock; see sweep.Sweeper.
func (s *Store) Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
	w := sweep.Sweeper{
		DB: s.db, Kind: s.kind, Now: s.now,
		OldEvents: sqlOldEvents, OldMessages: sqlOldMessages, OldNotes: sqlOldNotes, DoneInstallations: sqlDoneInstallations, Stranded: sqlStranded, StaleFollowUps: sqlStaleFollowUps,
		Events: s.deleteEvents,
		Installations: func(ctx context.Context, ids []string) (int, error) {
			return change(ctx, s, func(ctx context.Context, c *changing) (int, error) { return c.sweep(ctx, ids) })
		},
		Messages: func(ctx context.Context, seqs []int64) (int, error) {
			return s.changeMessages(ctx, sqlSweepMessages, seqs)
		},
		Notes:     s.deleteRows(sqlSweepNotes),
		FollowUps: s.deleteRows(sqlDropFollowUps),
		Expire: func(ctx context.Context, seqs []int64, now int64) (int, error) {
			return s.changeMessages(ctx, sqlEndStrand, seqs, now, outbound.LostWithHolder, outbound.Partly)
		},
	}
	return w.Sweep(ctx, r) //nolint:wrapcheck // it says what was being swept
}

func (s *Store) deleteEvents(ctx context.Context, seqs []int64) (events, deliveries int64, err error) {
	gone, err := write(ctx, s, func(ctx context.Context) (n [2]int64, err error) {
		err = s.atomically(
			ctx, s.pool,
			step{sql: sqlLockDeliveries, args: []any{seqs}},
			step{sql: sqlSweepEvents, args: []any{seqs}, n: &n[0]},
			step{sql: sqlSweepDeliveries, args: []any{seqs}, n: &n[1]},
			step{sql: sqlSweepFollowUps, args: []any{seqs}},
		)
		return n, err
	})
	return gone[0], gone[1], err
}

// deleteRows runs query, whose parameter is the list of seqs.
func (s *Store) deleteRows(query string) func(ctx context.Context, seqs []int64) (int, error) {
	return func(ctx context.Context, seqs []int64) (int, error) {
		n, err := write(ctx, s, func(ctx context.Context) (n int64, err error) {
			err = s.atomically(ctx, s.pool, step{sql: query, args: []any{seqs}, n: &n})
			return n, err
		})
		return int(n), err
	}
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

// changeMessages runs query, whose first parameter is the list of seqs. What
// another sweeper has in its hands is waited for, and then done.
func (s *Store) changeMessages(ctx context.Context, query string, seqs []int64, args ...any) (int, error) {
	n, err := write(ctx, s, func(ctx context.Context) (n int64, err error) {
		err = s.atomically(ctx, s.pool, step{sql: sqlLockMessages, args: []any{seqs}}, step{sql: query, args: append([]any{seqs}, args...), n: &n})
		return n, err
	})
	return int(n), err
}

// now is the database's clock, in ms.
func (s *Store) now(ctx context.Context) (ms int64, err error) {
	err = s.pool.QueryRow(ctx, sqlNow).Scan(&ms)
	return ms, s.kind(err)
}
