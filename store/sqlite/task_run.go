package sqlite

import (
	"context"

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/store/internal/record"
)

// SaveTaskRun implements admin.Store.
func (s *Store) SaveTaskRun(ctx context.Context, r admin.TaskRun) error {
	err := s.c.do(ctx, func(w *writer) error {
		w.note = true
		n, err := w.affected(record.SaveTaskRun, r.Task, record.Millis(r.LastStart), record.Millis(r.LastSuccess), r.Failures, r.LastError, r.Result, r.Session, r.Epoch)
		if err == nil && n == 0 {
			return engine.ErrFenced
		}
		return err
	})
	return failed("save the run of "+r.Task, err)
}
