package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"leasehold/delivery/outbound"
	"leasehold/internal/loop"
	"leasehold/store/maintenance"
)

const (
	// A message whose lease somebody holds is that one's to end.
	unheld = ` AND NOT EXISTS (SELECT 1 FROM lease l JOIN session s ON s.session_id = l.owner WHERE l.id = message.lease_id)`
	// What was being sent when its holder died may have been sent.
	sqlStranded  = `SELECT seq FROM message WHERE state < 2 AND expires_at <= $1` + unheld + ` ORDER BY seq LIMIT $2`
	sqlEndStrand = `UPDATE message SET state = CASE WHEN state = 0 AND NOT doubt THEN 4 ELSE 5 END, ended_at = $2,
       last_error = CASE state WHEN 0 THEN last_error ELSE $3 END
 WHERE seq = ANY($1::bigint[]) AND state < 2` + unheld

	// In the order of their seqs, so that two sweepers do not wait for each other.
	sqlLockMessages = `SELECT 1 FROM message WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE`

	// In the order of their seqs, which is nearly that of their ages.
	sqlOldMessages   = `SELECT seq, ended_at <> 0 AND ended_at < $2, created_at >= $2 FROM message WHERE seq > $1 ORDER BY seq LIMIT $3`
	sqlSweepMessages = `DELETE FROM message WHERE seq = ANY($1::bigint[]) AND state >= 2`
)

// sweepMessages ends what nobody could send in time, and deletes what is done with
// and past its retention.
func (s *Store) sweepMessages(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	if err := s.expireStranded(ctx, r, swept); err != nil || r.Messages <= 0 {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	cutoff := now - r.Messages.Milliseconds()
	for after, looked := int64(0), 0; ; {
		if looked >= r.Budget {
			swept.More = true
			return nil
		}
		page, err := s.oldPage(ctx, r.Batch, sqlOldMessages, after, cutoff, r.Batch)
		if err != nil {
			return err
		}
		n, err := s.changeMessages(ctx, sqlSweepMessages, page.seqs)
		swept.Messages += n
		if err != nil || page.end {
			return err
		}
		after, looked = page.last, looked+r.Batch
		if len(page.seqs) > 0 {
			if err := loop.Sleep(ctx, r.Pause); err != nil {
				return err
			}
		}
	}
}

func (s *Store) expireStranded(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	for looked := 0; looked < r.Budget; looked += r.Batch {
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		var seqs []int64
		if err := s.db.SelectContext(ctx, &seqs, sqlStranded, now, r.Batch); err != nil {
			return s.kind(err)
		}
		n, err := s.changeMessages(ctx, sqlEndStrand, seqs, now, outbound.LostWithHolder)
		swept.Expired += n
		if err != nil || len(seqs) < r.Batch {
			return err
		}
		if err := loop.Sleep(ctx, r.Pause); err != nil {
			return err
		}
	}
	swept.More = true
	return nil
}

// changeMessages runs query, whose first parameter is the list of seqs, unless that
// is empty. What another sweeper has in its hands is waited for, and then done.
func (s *Store) changeMessages(ctx context.Context, query string, seqs []int64, args ...any) (int, error) {
	if len(seqs) == 0 {
		return 0, nil
	}
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

// seqPage is a stretch of rows in the order of their seqs, and those that may go.
type seqPage struct {
	seqs []int64
	last int64
	end  bool // nothing old follows
}

// oldPage reads a stretch of at most limit rows: each row of query is a seq,
// whether it may go, and whether it is younger than all that may.
func (s *Store) oldPage(ctx context.Context, limit int, query string, args ...any) (p seqPage, err error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return p, s.kind(err)
	}
	n, young := 0, 0
	var done, recent bool
	_, err = pgx.ForEachRow(rows, []any{&p.last, &done, &recent}, func() error {
		if n++; recent {
			young++
		}
		if done {
			p.seqs = append(p.seqs, p.last)
		}
		return nil
	})
	p.end = n < limit || young == n
	return p, s.kind(err)
}
