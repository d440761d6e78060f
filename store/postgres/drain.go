package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"leasehold/internal/fault"
)

const (
	sqlDrainNode = `INSERT INTO node_drain(instance_id, since)
SELECT instance_id, leasehold_now() FROM session WHERE instance_id = $1 ON CONFLICT (instance_id) DO NOTHING`
	sqlResumeNode = `DELETE FROM node_drain WHERE instance_id = $1`
	sqlKnowsNode  = `SELECT EXISTS (SELECT 1 FROM session WHERE instance_id = $1) OR EXISTS (SELECT 1 FROM node_drain WHERE instance_id = $1)`
	// It waits for a session that is being opened, and sees it as it was committed.
	sqlMarkDrained = `UPDATE session SET draining = $2 WHERE instance_id = $1 AND draining <> $2`
	// A statement after the one that opens: it sees what was drained while that one waited.
	sqlStaysDrained = `UPDATE session SET draining = true WHERE session_id = $1
   AND EXISTS (SELECT 1 FROM node_drain d WHERE d.instance_id = session.instance_id)`
)

// DrainNode implements engine.Store.
func (s *Store) DrainNode(ctx context.Context, instance string, drained bool) error {
	changed, err := write(ctx, s, func(ctx context.Context) (bool, error) {
		change := sqlResumeNode
		if drained {
			change = sqlDrainNode
		}
		var changed, marked int64
		var known bool
		err := s.atomically(
			ctx, s.pool,
			step{sql: change, args: []any{instance}, n: &changed},
			step{sql: sqlMarkDrained, args: []any{instance, drained}, n: &marked},
			step{sql: sqlKnowsNode, args: []any{instance}, scan: func(rows pgx.Rows) error { return rows.Scan(&known) }},
			step{sql: sqlNotify, args: []any{"node"}},
		)
		if err == nil && changed == 0 && !known {
			err = fault.Errorf(fault.NotFound, "there is no node %s; run leasehold nodes list", instance)
		}
		return marked > 0, err
	})
	if changed {
		s.changes.Wake()
	}
	return failed("drain or resume node "+instance, err)
}
