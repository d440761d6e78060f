package postgres

import (
	"context"

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/store/internal/record"
)

// SaveTaskRun implements admin.Store. It waits for whoever takes the task over.
func (s *Store) SaveTaskRun(ctx context.Context, r admin.TaskRun) error {
	err := s.change(ctx, func(ctx context.Context, tx record.Tx) error {
		n, err := tx.Exec(ctx, record.SaveTaskRun, r.Task, record.Millis(r.LastStart), record.Millis(r.LastSuccess), r.Failures,
			plain(r.LastError), plain(r.Result), r.Session, r.Epoch)
		if err == nil && n == 0 {
			return engine.ErrFenced
		}
		return err
	})
	return failed("save the run of "+r.Task, err)
}
