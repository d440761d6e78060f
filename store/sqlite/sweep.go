package sqlite

import (
	"context"

	"leasehold/delivery/outbound"
	"leasehold/store/internal/sweep"
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
	sqlSweepFollowUps = `DELETE FROM follow_up WHERE event_seq IN (SELECT value FROM json_each($1))
   AND NOT EXISTS (SELECT 1 FROM event e WHERE e.seq = follow_up.event_seq)`
	sqlStaleFollowUps = `SELECT event_seq FROM follow_up WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`
	sqlDropFollowUps  = `DELETE FROM follow_up WHERE event_seq IN (SELECT value FROM json_each($1))`

	removedAndDone = ` FROM installation WHERE removed = 1
   AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.id = installation.id AND l.owner IN (SELECT session_id FROM session))
   AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.state = 0 AND d.lease_id = installation.id)
   AND NOT EXISTS (SELECT 1 FROM delivery d JOIN event e ON e.seq = d.event_seq
                    WHERE installation.via <> '' AND d.state = 0 AND d.lease_id = installation.via AND e.installation_id = installation.id)`
	sqlDoneInstallations  = `SELECT id` + removedAndDone + ` ORDER BY id LIMIT $1`
	sqlSweepInstallations = `DELETE` + removedAndDone + ` AND id = $1`

	// A message whose lease somebody holds is that one's to end.
	unheld = ` AND NOT EXISTS (SELECT 1 FROM lease l JOIN session s ON s.session_id = l.owner WHERE l.id = message.lease_id)`
	// What was being sent when its holder died may have been sent.
	sqlStranded  = `SELECT seq FROM message INDEXED BY message_waiting WHERE state < 2 AND expires_at <= $1` + unheld + ` ORDER BY seq LIMIT $2`
	sqlEndStrand = `UPDATE message SET state = CASE WHEN state + doubt > 0 THEN 5 WHEN receipt <> '' THEN 3 ELSE 4 END, ended_at = $2,
       last_error = CASE WHEN state = 1 THEN $3 WHEN doubt = 0 AND receipt <> '' THEN $4 ELSE last_error END
 WHERE seq IN (SELECT value FROM json_each($1)) AND state < 2` + unheld

	// In the order of their seqs, which is nearly that of their ages.
	sqlOldMessages   = `SELECT seq, ended_at <> 0 AND ended_at < $2, created_at >= $2 FROM message WHERE seq > $1 ORDER BY seq LIMIT $3`
	sqlSweepMessages = `DELETE FROM message WHERE seq IN (SELECT value FROM json_each($1)) AND state >= 2`

	sqlOldNotes   = `SELECT seq, at < $2, at >= $2 FROM audit WHERE seq > $1 ORDER BY seq LIMIT $3`
	sqlSweepNotes = `DELETE FROM audit WHERE seq IN (SELECT value FROM json_each($1))`
)

// tablesOf are those with rows that belong to an installation, by their key.
var tablesOf = []string{
	`DELETE FROM lease WHERE id = $1`, `DELETE FROM cursor WHERE lease_id = $1`,
	`DELETE FROM link_status WHERE installation_id = $1`, `DELETE FROM connect_budget WHERE lease_id = $1`,
}

// Sweep implements store.Store, by the store's clock; see sweep.Sweeper. It works on a
// full disk once a Probe gave the reserve up.
func (s *Store) Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
	r = r.Defaults()
	s.retention.Store(&r) // for when the disk is full
	return s.sweep(ctx, r)
}

func (s *Store) sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
	w := sweep.Sweeper{
		DB: s.db, Kind: s.judge,
		Now:       func(context.Context) (int64, error) { return s.millis(), nil },
		OldEvents: sqlOldEvents, OldMessages: sqlOldMessages, OldNotes: sqlOldNotes, DoneInstallations: sqlDoneInstallations, Stranded: sqlStranded, StaleFollowUps: sqlStaleFollowUps,
		Events: s.deleteEvents, Installations: s.deleteInstallations,
		Messages: func(ctx context.Context, seqs []int64) (int, error) {
			return s.changeRows(ctx, sqlSweepMessages, seqs)
		},
		FollowUps: func(ctx context.Context, seqs []int64) (int, error) {
			return s.changeRows(ctx, sqlDropFollowUps, seqs)
		},
		Notes: func(ctx context.Context, seqs []int64) (int, error) { return s.changeRows(ctx, sqlSweepNotes, seqs) },
		Expire: func(ctx context.Context, seqs []int64, now int64) (int, error) {
			return s.changeRows(ctx, sqlEndStrand, seqs, now, outbound.LostWithHolder, outbound.Partly)
		},
	}
	return w.Sweep(ctx, r) //nolint:wrapcheck // it says what was being swept
}

func (s *Store) deleteEvents(ctx context.Context, seqs []int64) (events, deliveries int64, err error) {
	among, err := list(seqs)
	if err != nil {
		return 0, 0, err
	}
	err = s.c.do(ctx, func(w *writer) (err error) {
		if events, err = w.affected(sqlSweepEvents, among); err != nil {
			return err
		}
		if deliveries, err = w.affected(sqlSweepDeliveries, among); err != nil {
			return err
		}
		_, err = w.exec(sqlSweepFollowUps, among)
		return err
	})
	return events, deliveries, err
}

func (s *Store) deleteInstallations(ctx context.Context, ids []string) (deleted int, err error) {
	err = s.c.do(ctx, func(w *writer) error {
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
	return deleted, err
}

// changeRows runs query, whose first parameter is the list of seqs.
func (s *Store) changeRows(ctx context.Context, query string, seqs []int64, args ...any) (int, error) {
	among, err := list(seqs)
	if err != nil {
		return 0, err
	}
	var n int64
	err = s.c.do(ctx, func(w *writer) (err error) {
		n, err = w.affected(query, append([]any{among}, args...)...)
		return err
	})
	return int(n), err
}
