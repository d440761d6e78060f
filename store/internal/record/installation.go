package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"leasehold/admin"
)

const sqlInstallations = `SELECT i.id, i.type, i.via, i.config, i.labels, i.targets, i.enabled, i.source, i.revision, i.fingerprint, i.identity, i.interactions,
       coalesce(s.state, '') AS state, coalesce(s.reason, '') AS reason, coalesce(s.detail, '') AS detail, coalesce(s.since, 0) AS since,
       coalesce(s.attempts, 0) AS attempts, coalesce(s.next_attempt, 0) AS next_attempt, coalesce(s.last_ready, 0) AS last_ready,
       coalesce(s.last_event, 0) AS last_event, coalesce(n.session_id, '') AS owner, coalesce(n.name, '') AS node, coalesce(l.epoch, 0) AS epoch
  FROM installation i
  LEFT JOIN link_status s ON s.installation_id = i.id
  LEFT JOIN lease l ON l.id = CASE i.via WHEN '' THEN i.id ELSE i.via END
  LEFT JOIN session n ON n.session_id = l.owner
 WHERE NOT i.removed`

// installationRow is a line of sqlInstallations.
type installationRow struct {
	ID, Type, Via, Config, Labels, Targets string
	Enabled                                bool
	Source                                 string
	Revision                               int64
	Fingerprint, Identity                  string
	Interactions                           string
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
		Interactions: r.Interactions, Fingerprint: r.Fingerprint, Identity: r.Identity, Owner: r.Owner, Node: r.Node, Epoch: r.Epoch,
		Status: admin.Status{
			State: r.State, Reason: r.Reason, Detail: r.Detail, Since: Time(r.Since), Attempts: r.Attempts,
			NextAttempt: Time(r.NextAttempt), LastReady: Time(r.LastReady), LastEvent: Time(r.LastEvent),
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
func (r *Reads) Installations(ctx context.Context) ([]admin.Installation, error) {
	var lines []installationRow
	if err := r.db.SelectContext(ctx, &lines, sqlInstallations+` ORDER BY i.id`); err != nil {
		return nil, fmt.Errorf("read the installations: %w", r.kind(err))
	}
	waits, err := r.backlogs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the installations: %w", r.kind(err))
	}
	all := make([]admin.Installation, 0, len(lines))
	for n := range lines {
		i, err := lines[n].installation()
		if err != nil {
			return nil, fmt.Errorf("read the installations: %w", err)
		}
		b := waits[i.ID]
		i.Backlog, i.OldestPending = b.Count, Time(b.Oldest)
		all = append(all, i)
	}
	return all, nil
}

// Installation implements admin.Store.
func (r *Reads) Installation(ctx context.Context, id string) (admin.Installation, error) {
	var line installationRow
	err := r.db.GetContext(ctx, &line, sqlInstallations+` AND i.id = $1`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return admin.Installation{}, NoInstallation(id)
	}
	if err != nil {
		return admin.Installation{}, fmt.Errorf("read installation %s: %w", id, r.kind(err))
	}
	i, err := line.installation()
	if err != nil {
		return admin.Installation{}, fmt.Errorf("read installation %s: %w", id, err)
	}
	b, err := r.backlogOf(ctx, &i)
	if err != nil {
		return admin.Installation{}, fmt.Errorf("read installation %s: %w", id, r.kind(err))
	}
	i.Backlog, i.OldestPending = b.Count, Time(b.Oldest)
	return i, nil
}
