package record

import (
	"context"
	"fmt"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/engine"
)

const (
	sqlNodes = `SELECT s.session_id, s.instance_id, s.name, s.version, s.opened_at, s.draining, s.weight,
       EXISTS (SELECT 1 FROM node_drain d WHERE d.instance_id = s.instance_id) AS drained,
       (SELECT count(*) FROM lease l WHERE l.owner = s.session_id AND ` + NotLoops + `) AS leases
  FROM session s ORDER BY s.name, s.session_id`
	sqlCountLinks = `SELECT coalesce(s.state, '') AS name, count(*) AS n FROM installation i LEFT JOIN link_status s ON s.installation_id = i.id
 WHERE NOT i.removed GROUP BY 1`
	sqlTaskRuns = `SELECT task, last_start, last_success, failures, last_error, result FROM task_run ORDER BY task`
	// SaveTaskRun keeps one run for each task: that of the task's holder, $7 under the
	// epoch $8, or of whoever brings no such token.
	SaveTaskRun = `INSERT INTO task_run(task, last_start, last_success, failures, last_error, result)
SELECT $1, CAST($2 AS bigint), CAST($3 AS bigint), CAST($4 AS integer), $5, $6
 WHERE $7 = '' OR EXISTS (SELECT 1 FROM lease l JOIN session s ON s.session_id = l.owner WHERE l.id = '` + engine.LoopPrefix + `' || $1 AND l.owner = $7 AND l.epoch = $8)
ON CONFLICT (task) DO UPDATE SET last_start = excluded.last_start, last_success = excluded.last_success, failures = excluded.failures,
       last_error = excluded.last_error, result = excluded.result`
)

// Nodes implements admin.Store.
func (r *Reads) Nodes(ctx context.Context) ([]admin.Node, error) {
	var rows []struct {
		SessionID  string `db:"session_id"`
		InstanceID string `db:"instance_id"`
		Name       string
		Version    string
		OpenedAt   int64 `db:"opened_at"`
		Draining   bool
		Drained    bool
		Weight     int
		Leases     int
	}
	if err := r.db.SelectContext(ctx, &rows, sqlNodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", r.kind(err))
	}
	nodes := make([]admin.Node, 0, len(rows))
	for _, n := range rows {
		nodes = append(nodes, admin.Node{
			Session: n.SessionID, Instance: n.InstanceID, Name: n.Name, Version: n.Version,
			OpenedAt: Time(n.OpenedAt), Draining: n.Draining, Drained: n.Drained, Weight: n.Weight, Leases: n.Leases,
		})
	}
	return nodes, nil
}

// Totals implements admin.Store. An installation whose state was never stored
// counts under "".
func (r *Reads) Totals(ctx context.Context) (admin.Totals, error) {
	t := admin.Totals{Links: map[string]int{}, Deliveries: map[string]int64{}}
	var links []struct {
		Name string
		N    int
	}
	if err := r.db.SelectContext(ctx, &links, sqlCountLinks); err != nil {
		return t, fmt.Errorf("count what there is: %w", r.kind(err))
	}
	for _, l := range links {
		t.Links[l.Name] = l.N
		t.Installations += l.N
	}
	for state, query := range map[delivery.State]string{delivery.Pending: r.d.CountPending, delivery.Dead: r.d.CountDead} {
		var n int64
		if err := r.db.GetContext(ctx, &n, query); err != nil {
			return t, fmt.Errorf("count what there is: %w", r.kind(err))
		}
		t.Deliveries[state.String()] = n
	}
	if err := r.db.GetContext(ctx, &t.Messages, r.d.CountMessages); err != nil {
		return t, fmt.Errorf("count what there is: %w", r.kind(err))
	}
	var err error
	if t.Bytes, err = r.d.Bytes(ctx, r.db); err != nil {
		return t, fmt.Errorf("count what there is: %w", r.kind(err))
	}
	return t, nil
}

// TaskRuns implements admin.Store.
func (r *Reads) TaskRuns(ctx context.Context) ([]admin.TaskRun, error) {
	var rows []struct {
		Task        string
		LastStart   int64 `db:"last_start"`
		LastSuccess int64 `db:"last_success"`
		Failures    int
		LastError   string `db:"last_error"`
		Result      string
	}
	if err := r.db.SelectContext(ctx, &rows, sqlTaskRuns); err != nil {
		return nil, fmt.Errorf("list task runs: %w", r.kind(err))
	}
	runs := make([]admin.TaskRun, 0, len(rows))
	for _, t := range rows {
		runs = append(runs, admin.TaskRun{
			Task: t.Task, LastStart: Time(t.LastStart), LastSuccess: Time(t.LastSuccess),
			Failures: t.Failures, LastError: t.LastError, Result: t.Result,
		})
	}
	return runs, nil
}
