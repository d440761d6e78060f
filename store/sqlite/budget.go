package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/store/internal/record"
)

const (
	sqlGetBudget = `SELECT window_start, used FROM connect_budget WHERE lease_id = $1`
	sqlSetBudget = `INSERT INTO connect_budget(lease_id, window_start, used) VALUES ($1, $2, $3)
ON CONFLICT (lease_id) DO UPDATE SET window_start = excluded.window_start, used = excluded.used`
)

// Spend implements engine.Store. A window that begins before the stored one
// counts as the stored one: a clock that was set back allows nothing twice.
func (s *Store) Spend(ctx context.Context, t channel.Term, start time.Time, n, limit int) (int, bool, error) {
	var used int
	var ok bool
	err := s.c.do(ctx, func(w *writer) error {
		held, err := newGroup(w).holds(t)
		if err != nil {
			return err
		}
		if !held {
			return engine.ErrFenced
		}
		window := record.Millis(start)
		var stored int64
		err = w.get(sqlGetBudget, []any{t.Installation}, &stored, &used)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if window > stored {
			used = 0
		}
		if used+n > limit {
			return nil
		}
		used, ok = used+n, true
		_, err = w.exec(sqlSetBudget, t.Installation, max(window, stored), used)
		return err
	})
	if err != nil {
		return 0, false, failed("spend the connect budget of "+t.Installation, err)
	}
	return used, ok, nil
}
