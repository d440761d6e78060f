package sqlite

import (
	"context"

	"leasehold/internal/fault"
)

const (
	sqlDrainNode = `INSERT INTO node_drain(instance_id, since)
SELECT instance_id, $2 FROM session WHERE instance_id = $1 ON CONFLICT (instance_id) DO NOTHING`
	sqlResumeNode   = `DELETE FROM node_drain WHERE instance_id = $1`
	sqlKnowsNode    = `SELECT 1 FROM session WHERE instance_id = $1 UNION ALL SELECT 1 FROM node_drain WHERE instance_id = $1`
	sqlMarkDrained  = `UPDATE session SET draining = $2 WHERE instance_id = $1 AND draining <> $2`
	sqlStaysDrained = `UPDATE session SET draining = 1 WHERE session_id = $1
   AND EXISTS (SELECT 1 FROM node_drain d WHERE d.instance_id = session.instance_id)`
)

// DrainNode implements engine.Store.
func (s *Store) DrainNode(ctx context.Context, instance string, drained bool) error {
	err := s.c.do(ctx, func(w *writer) error {
		change, mark := sqlResumeNode, 0
		args := []any{instance}
		if drained {
			change, mark, args = sqlDrainNode, 1, append(args, w.now)
		}
		changed, err := w.affected(change, args...)
		if err != nil {
			return err
		}
		known, err := w.exists(sqlKnowsNode, instance)
		if err != nil {
			return err
		}
		if changed == 0 && !known {
			return fault.Errorf(fault.NotFound, "there is no node %s; run leasehold nodes list", instance)
		}
		marked, err := w.affected(sqlMarkDrained, instance, mark)
		w.bump, w.wake = marked > 0, marked > 0
		return err
	})
	return failed("drain or resume node "+instance, err)
}
