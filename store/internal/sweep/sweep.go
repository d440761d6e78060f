// Package sweep deletes what a store need not keep any longer, in the same order and
// as gently whatever the database. What is old is asked for here; each deletion is
// the store's, a transaction of its own that looks once more.
package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"leasehold/internal/loop"
	"leasehold/store/maintenance"
)

// Sweeper sweeps one database. Every field is needed.
type Sweeper struct {
	DB   *sqlx.DB
	Kind func(error) error // gives an error of DB its kind
	Now  func(ctx context.Context) (int64, error)

	// The next old events, messages and notes of the audit: the parameters are the seq to begin after, the
	// time before which they are old, for events that of dead letters (0 = none is), and
	// how many. Each row is a seq, whether it may go, and whether it is younger than all
	// that may.
	OldEvents, OldMessages, OldNotes string
	// Removed installations that nothing keeps; the parameter is how many.
	DoneInstallations string
	// Messages past the time $1 that nobody could send; $2 is how many.
	Stranded string
	// Follow-up addresses past the time $1; $2 is how many.
	StaleFollowUps string

	Events        func(ctx context.Context, seqs []int64) (events, deliveries int64, err error)
	Installations func(ctx context.Context, ids []string) (int, error)
	Messages      func(ctx context.Context, seqs []int64) (int, error)
	Notes         func(ctx context.Context, seqs []int64) (int, error)
	Expire        func(ctx context.Context, seqs []int64, now int64) (int, error)
	FollowUps     func(ctx context.Context, seqs []int64) (int, error)
}

// Sweep deletes what is past its retention: events with nothing that waits, their
// deliveries, messages that are done, notes of the audit, and removed installations
// whose backlog is delivered; follow-up addresses that are of no use any more, with or
// before their events. A message whose time is over and whose lease nobody holds expires. Each
// batch has a pause behind it; a sweep beside another one, or after one that was cut
// short, does what is left. One table that fails does not stop the others. A cycle
// that finds nothing writes nothing.
func (s *Sweeper) Sweep(ctx context.Context, r maintenance.Retention) (maintenance.Swept, error) {
	r = r.Defaults()
	var swept maintenance.Swept
	err := errors.Join(
		failed("sweep events", s.events(ctx, r, &swept)),
		failed("sweep installations", s.installations(ctx, r, &swept)),
		failed("sweep messages", s.messages(ctx, r, &swept)),
		failed("sweep the audit", s.notes(ctx, r, &swept)),
		failed("sweep follow-up addresses", s.exhaust(ctx, r, &swept, s.StaleFollowUps, func(seqs []int64, _ int64) error {
			n, err := s.FollowUps(ctx, seqs)
			swept.FollowUps += n
			return err
		})),
	)
	return swept, err
}

func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (s *Sweeper) events(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	if r.Events <= 0 {
		return nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	dead := int64(0)
	if r.Dead > 0 {
		dead = now - r.Dead.Milliseconds()
	}
	return s.walk(ctx, r, swept, s.OldEvents, []any{now - r.Events.Milliseconds(), dead}, func(seqs []int64) error {
		events, deliveries, err := s.Events(ctx, seqs)
		swept.Events += int(events)
		swept.Deliveries += int(deliveries)
		return err
	})
}

func (s *Sweeper) messages(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	err := s.exhaust(ctx, r, swept, s.Stranded, func(seqs []int64, now int64) error {
		n, err := s.Expire(ctx, seqs, now)
		swept.Expired += n
		return err
	})
	if err != nil || r.Messages <= 0 {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	return s.walk(ctx, r, swept, s.OldMessages, []any{now - r.Messages.Milliseconds()}, func(seqs []int64) error {
		n, err := s.Messages(ctx, seqs)
		swept.Messages += n
		return err
	})
}

func (s *Sweeper) notes(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	if r.Audit <= 0 {
		return nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	return s.walk(ctx, r, swept, s.OldNotes, []any{now - r.Audit.Milliseconds()}, func(seqs []int64) error {
		n, err := s.Notes(ctx, seqs)
		swept.Notes += n
		return err
	})
}

// walk goes through what query finds, the oldest first, until it is young or the
// budget is used up, and removes what may go, batch by batch.
func (s *Sweeper) walk(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept, query string, args []any, remove func([]int64) error) error {
	for after, looked := int64(0), 0; looked < r.Budget; looked += r.Batch {
		page, err := s.page(ctx, r.Batch, query, append(append([]any{after}, args...), r.Batch)...)
		if err != nil {
			return err
		}
		if len(page.seqs) > 0 {
			if err := remove(page.seqs); err != nil {
				return err
			}
		}
		if page.end {
			return nil
		}
		after = page.last
		if len(page.seqs) > 0 {
			if err := loop.Sleep(ctx, r.Pause); err != nil {
				return err
			}
		}
	}
	swept.More = true
	return nil
}

// exhaust changes what query finds, whose time is over, until it finds no more or the
// budget is used up, batch by batch.
func (s *Sweeper) exhaust(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept, query string, change func(seqs []int64, now int64) error) error {
	for looked := 0; looked < r.Budget; looked += r.Batch {
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		var seqs []int64
		if err := s.DB.SelectContext(ctx, &seqs, query, now, r.Batch); err != nil {
			return s.Kind(err)
		}
		if len(seqs) == 0 {
			return nil
		}
		if err := change(seqs, now); err != nil || len(seqs) < r.Batch {
			return err
		}
		if err := loop.Sleep(ctx, r.Pause); err != nil {
			return err
		}
	}
	swept.More = true
	return nil
}

func (s *Sweeper) installations(ctx context.Context, r maintenance.Retention, swept *maintenance.Swept) error {
	for looked := 0; looked < r.Budget; {
		var ids []string
		if err := s.DB.SelectContext(ctx, &ids, s.DoneInstallations, r.Batch); err != nil {
			return s.Kind(err)
		}
		if len(ids) == 0 {
			return nil
		}
		deleted, err := s.Installations(ctx, ids)
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

// stretch are rows in the order of their seqs, and those of them that may go.
type stretch struct {
	seqs []int64
	last int64
	end  bool // nothing old follows
}

// page reads a stretch of at most limit rows.
func (s *Sweeper) page(ctx context.Context, limit int, query string, args ...any) (p stretch, err error) {
	rows, err := s.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return p, s.Kind(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	n, young := 0, 0
	for rows.Next() {
		var done, recent bool
		if err := rows.Scan(&p.last, &done, &recent); err != nil {
			return p, s.Kind(err)
		}
		if n++; recent {
			young++
		}
		if done {
			p.seqs = append(p.seqs, p.last)
		}
	}
	p.end = n < limit || young == n
	return p, s.Kind(rows.Err())
}
