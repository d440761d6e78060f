package record

import (
	"cmp"
	"context"

	"leasehold/admin"
)

const (
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
func (r *Reads) backlogOf(ctx context.Context, i *admin.Installation) (b backlog, err error) {
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

func (r *Reads) backlogs(ctx context.Context) (map[string]backlog, error) {
	var own, shared []backlog
	var carriers []string
	if err := r.db.SelectContext(ctx, &own, r.d.Backlogs); err != nil {
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
