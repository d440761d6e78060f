package postgres

import (
	"context"

	"leasehold/admin"
	"leasehold/store/internal/record"
)

// SaveTaskRun implements admin.Store.
func (s *Store) SaveTaskRun(ctx context.Context, r admin.TaskRun) error {
	_, err := write(ctx, s, func(ctx context.Context) (bool, error) {
		return true, s.atomically(ctx, s.pool, step{
			sql:  record.SaveTaskRun,
			args: []any{r.Task, record.Millis(r.LastStart), record.Millis(r.LastSuccess), r.Failures, plain(r.LastError), plain(r.Result)},
		})
	})
	return failed("save the run of "+r.Task, err)
}
