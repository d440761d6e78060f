package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"leasehold/admin"
)

const sqlInstallations = `SELECT i.id, i.type, i.via, i.config, i.labels, i.targets, i.enabled, i.source, i.revision, i.fingerprint, i.identity,
       coalesce(s.state, '') AS state, coalesce(s.reason, '') AS reason, coalesce(s.detail, '') AS detail, coalesce(s.since, 0) AS since,
       coalesce(s.attempts, 0) AS attempts, coalesce(s.next_attempt, 0) AS next_attempt, coalesce(s.last_ready, 0) AS last_ready,
       coalesce(s.last_event, 0) AS last_event, coalesce(n.session_id, '') AS owner, coalesce(n.name, '') AS node, coalesce(l.epoch, 0) AS epoch
  FROM installation i
  LEFT JOIN link_status s ON s.installation_id = i.id
  LEFT JOIN lease l ON l.id = CASE i.via WHEN '' THEN i.id ELSE i.via END
  LEFT JOIN session n ON n.session_id = l.owner
 WHERE i.removed = 0`

// installationRow is a line of sqlInstallations.
type installationRow struct {
	ID, Type, Via, Config, Labels, Targets string
	Enabled                                bool
	Source                                 string
	Revision                               int64
	Fingerprint, Identity                  string
	State, Reason, Detail                  string
	Since                                  int64
	Attempts                               int
	NextAttempt                            int64 `db:"next_attempt"`
	LastReady                              int64 `db:"last_ready"`
	LastEvent                              int64 `db:"last_event"`
	Owner, Node                            string
	Epoch                                  int64
}

func (r *installationRow) installation() (admin.Installation, error) {
	i := admin.Installation{
		ID: r.ID, Type: r.Type, Via: r.Via, Config: json.RawMessage(r.Config), Enabled: r.Enabled, Source: r.Source, Revision: r.Revision,
		Fingerprint: r.Fingerprint, Identity: r.Identity, Owner: r.Owner, Node: r.Node, Epoch: r.Epoch,
		Status: admin.Status{
			State: r.State, Reason: r.Reason, Detail: r.Detail, Since: fromMillis(r.Since), Attempts: r.Attempts,
			NextAttempt: fromMillis(r.NextAttempt), LastReady: fromMillis(r.LastReady), LastEvent: fromMillis(r.LastEvent),
		},
	}
	if r.Labels != "{}" {
		if err := json.Unmarshal([]byte(r.Labels), &i.Labels); err != nil {
			return i, fmt.Errorf("labels of %s: %w", r.ID, err)
		}
	}
	switch r.Targets {
	case "[]":
	case nowhere:
		i.Targets = []string{}
	default:
		if err := json.Unmarshal([]byte(r.Targets), &i.Targets); err != nil {
			return i, fmt.Errorf("targets of %s: %w", r.ID, err)
		}
	}
	return i, nil
}

// Installations implements admin.Store.
func (r *reads) Installations(ctx context.Context) ([]admin.Installation, error) {
	var lines []installationRow
	if err := r.db.SelectContext(ctx, &lines, sqlInstallations+` ORDER BY i.id`); err != nil {
		return nil, failed("read the installations", r.kind(err))
	}
	waits, err := r.backlogs(ctx)
	if err != nil {
		return nil, failed("read the installations", r.kind(err))
	}
	all := make([]admin.Installation, 0, len(lines))
	for n := range lines {
		i, err := lines[n].installation()
		if err != nil {
			return nil, failed("read the installations", err)
		}
		b := waits[i.ID]
		i.Backlog, i.OldestPending = b.Count, fromMillis(b.Oldest)
		all = append(all, i)
	}
	return all, nil
}

// Installation implements admin.Store.
func (r *reads) Installation(ctx context.Context, id string) (admin.Installation, error) {
	var line installationRow
	err := r.db.GetContext(ctx, &line, sqlInstallations+` AND i.id = $1`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return admin.Installation{}, noInstallation(id)
	}
	if err != nil {
		return admin.Installation{}, failed("read installation "+id, r.kind(err))
	}
	i, err := line.installation()
	if err != nil {
		return admin.Installation{}, failed("read installation "+id, err)
	}
	b, err := r.backlogOf(ctx, &i)
	if err != nil {
		return admin.Installation{}, failed("read installation "+id, r.kind(err))
	}
	i.Backlog, i.OldestPending = b.Count, fromMillis(b.Oldest)
	return i, nil
}

const (
	// Counted per lease, from the index of what waits alone; CROSS keeps that in front.
	sqlBacklogs = `SELECT b.lease_id AS id, b.count, e.accepted_at AS oldest
  FROM (SELECT lease_id, count(*) AS count, min(event_seq) AS seq FROM delivery WHERE state = 0 GROUP BY lease_id) b
  CROSS JOIN event e ON e.seq = b.seq`
	// Where others ride on the lease, each event tells whose it is.
	sqlSharedBacklogs = `SELECT e.installation_id AS id, count(*) AS count, min(e.accepted_at) AS oldest
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.state = 0 AND d.lease_id IN (SELECT via FROM installation WHERE via <> '') GROUP BY e.installation_id`
	sqlCarriers = `SELECT DISTINCT via FROM installation WHERE via <> ''`

	sqlBacklog = `SELECT b.count, coalesce((SELECT e.accepted_at FROM event e WHERE e.seq = b.seq), 0) AS oldest
  FROM (SELECT count(*) AS count, min(event_seq) AS seq FROM delivery WHERE state = 0 AND lease_id = $1) b`
	sqlSharedBacklog = `SELECT count(*) AS count, coalesce(min(e.accepted_at), 0) AS oldest
  FROM delivery d JOIN event e ON e.seq = d.event_seq WHERE d.state = 0 AND d.lease_id = $1 AND e.installation_id = $2`
	sqlCarries = `SELECT EXISTS (SELECT 1 FROM installation WHERE via <> '' AND via = $1)`
)

// backlog is what waits for one installation.
type backlog struct {
	ID     string
	Count  int64
	Oldest int64 // when it was accepted, in ms
}

// backlogOf is what waits for one installation alone.
func (r *reads) backlogOf(ctx context.Context, i *admin.Installation) (b backlog, err error) {
	shared := i.Via != ""
	if !shared {
		if err := r.db.GetContext(ctx, &shared, sqlCarries, i.ID); err != nil {
			return b, err
		}
	}
	if shared {
		err = r.db.GetContext(ctx, &b, sqlSharedBacklog, cmp.Or(i.Via, i.ID), i.ID)
	} else {
		err = r.db.GetContext(ctx, &b, sqlBacklog, i.ID)
	}
	return b, err
}

func (r *reads) backlogs(ctx context.Context) (map[string]backlog, error) {
	var own, shared []backlog
	var carriers []string
	if err := r.db.SelectContext(ctx, &own, sqlBacklogs); err != nil {
		return nil, err
	}
	if err := r.db.SelectContext(ctx, &carriers, sqlCarriers); err != nil {
		return nil, err
	}
	waits := make(map[string]backlog, len(own))
	for _, b := range own {
		waits[b.ID] = b
	}
	if len(carriers) == 0 {
		return waits, nil
	}
	if err := r.db.SelectContext(ctx, &shared, sqlSharedBacklogs); err != nil {
		return nil, err
	}
	for _, id := range carriers {
		delete(waits, id)
	}
	for _, b := range shared {
		waits[b.ID] = b
	}
	return waits, nil
}
