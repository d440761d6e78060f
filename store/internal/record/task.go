package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"leasehold/admin"
	"leasehold/engine"
)

const (
	// NotLoops chooses, of leases l, those of installations.
	NotLoops = `l.id NOT LIKE '` + engine.LoopPrefix + `%'`

	sqlTaskHolders = `SELECT substr(l.id, 6) AS task, l.epoch, s.session_id AS session, s.name AS node
  FROM lease l JOIN session s ON s.session_id = l.owner WHERE l.id LIKE '` + engine.LoopPrefix + `%' ORDER BY l.id`
	sqlTaskHolder = `SELECT l.epoch, s.session_id, s.name FROM lease l JOIN session s ON s.session_id = l.owner WHERE l.id = $1`
	sqlTaskLease  = `INSERT INTO lease(id) VALUES ($1) ON CONFLICT (id) DO NOTHING`
	// Only such a transaction as this one takes the lease of a task, so that it cannot be
	// granted twice. An epoch is the store's clock in milliseconds, or one more than the
	// last, as any lease's.
	sqlTakeTask = `UPDATE lease SET owner = $2, epoch = CASE WHEN epoch >= $3 THEN epoch + 1 ELSE $3 END WHERE id = $1
   AND (owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = lease.owner))
   AND EXISTS (SELECT 1 FROM session m WHERE m.session_id = $2 AND NOT m.draining)`
)

// TaskHolders implements admin.Store.
func (r *Reads) TaskHolders(ctx context.Context) ([]admin.TaskHolder, error) {
	holders := []admin.TaskHolder{}
	if err := r.db.SelectContext(ctx, &holders, sqlTaskHolders); err != nil {
		return nil, fmt.Errorf("list who runs the tasks: %w", r.kind(err))
	}
	return holders, nil
}

// HoldTask implements store.Store.
func (w *Writes) HoldTask(ctx context.Context, session, task string) (admin.TaskHolder, error) {
	h := admin.TaskHolder{Task: task}
	id := engine.TaskLease(task)
	err := w.reads.db.QueryRowContext(ctx, sqlTaskHolder, id).Scan(&h.Epoch, &h.Session, &h.Node)
	if err == nil {
		return h, nil // which costs no write, as long as he lives
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return h, fmt.Errorf("take turns at %s: %w", task, w.reads.kind(err))
	}
	err = w.change(ctx, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, sqlTaskLease, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlTakeTask, id, session, tx.Now()); err != nil {
			return err
		}
		_, err := tx.Get(ctx, sqlTaskHolder, []any{id}, &h.Epoch, &h.Session, &h.Node)
		return err
	})
	if err != nil {
		return admin.TaskHolder{Task: task}, fmt.Errorf("take turns at %s: %w", task, err)
	}
	return h, nil
}
