package record

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/fault"
)

const (
	sqlGetRow = `SELECT type, via, config, labels, targets, fingerprint, identity, enabled, removed, source, revision, interactions
  FROM installation WHERE id = $1`
	sqlPutRow = `INSERT INTO installation(id, type, via, config, labels, targets, fingerprint, identity, enabled, source, revision, created_at, updated_at, interactions)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13)
ON CONFLICT (id) DO UPDATE SET type = excluded.type, via = excluded.via, config = excluded.config, labels = excluded.labels, targets = excluded.targets,
       fingerprint = excluded.fingerprint, identity = excluded.identity, enabled = excluded.enabled, removed = excluded.removed, source = excluded.source,
       revision = excluded.revision, updated_at = excluded.updated_at, interactions = excluded.interactions`
	sqlEnableRow  = `UPDATE installation SET enabled = $2, revision = revision + 1, updated_at = $3 WHERE id = $1`
	sqlRemoveRow  = `UPDATE installation SET removed = $2, revision = revision + 1, updated_at = $3 WHERE id = $1`
	sqlAddLease   = `INSERT INTO lease(id) VALUES ($1) ON CONFLICT (id) DO NOTHING`
	sqlResetLease = `UPDATE lease SET fails = 0, not_before = 0 WHERE id = $1`
	// What waits goes with an installation to its new carrier.
	sqlMoveBacklog = `UPDATE delivery SET lease_id = $3 WHERE state = 0 AND lease_id = $2
   AND event_seq IN (SELECT seq FROM event WHERE installation_id = $1)`

	sqlTwin    = `SELECT id FROM installation WHERE type = $1 AND identity = $2 AND identity <> '' AND id <> $3 AND enabled AND NOT removed LIMIT 1`
	sqlCarrier = `SELECT 1 FROM installation WHERE id = $1 AND via = '' AND NOT removed`
)

// row is an installation as it is stored.
type row struct {
	id, typ, via            string
	config, labels, targets string
	fingerprint, identity   string
	enabled                 bool
	removed                 bool
	source                  string
	interactions            string
	revision                int64
}

// lease is the id of the lease under which its events stand.
func (r row) lease() string {
	if r.via != "" {
		return r.via
	}
	return r.id
}

// same reports whether both say the same, whatever their revisions.
func (r row) same(o row) bool {
	r.revision = o.revision
	return r == o
}

// nowhere is stored as the targets of an installation whose events go to none; one
// that names none, so that the default ones hold, has an empty list.
const nowhere = "null"

func newRow(i admin.Installation, source string) (row, error) {
	r := row{
		id: i.ID, typ: i.Type, via: i.Via, config: string(i.Config), labels: "{}", targets: "[]",
		fingerprint: i.Fingerprint, identity: i.Identity, enabled: i.Enabled, source: source, interactions: cmp.Or(i.Interactions, admin.Defer),
	}
	switch {
	case i.ID == "":
		return row{}, fault.Errorf(fault.Invalid, "an installation needs an id")
	case i.Type == "":
		return row{}, fault.Errorf(fault.Invalid, "installation %s: it needs a type", i.ID)
	case source == "":
		return row{}, fault.Errorf(fault.Invalid, "installation %s: it needs a source", i.ID)
	}
	if r.config == "" {
		r.config = "{}"
	}
	if len(i.Labels) > 0 {
		b, err := json.Marshal(i.Labels)
		if err != nil {
			return row{}, fmt.Errorf("installation %s: labels: %w", i.ID, err)
		}
		r.labels = string(b)
	}
	switch {
	case i.Targets == nil:
	case len(i.Targets) == 0:
		r.targets = nowhere
	default:
		b, err := json.Marshal(i.Targets)
		if err != nil {
			return row{}, fmt.Errorf("installation %s: targets: %w", i.ID, err)
		}
		r.targets = string(b)
	}
	return r, nil
}

// getRow reads a row, a removed one too; false: there is none.
func getRow(ctx context.Context, tx Tx, id string) (row, bool, error) {
	r := row{id: id}
	exists, err := tx.Get(ctx, sqlGetRow, []any{id}, &r.typ, &r.via, &r.config, &r.labels, &r.targets, &r.fingerprint, &r.identity,
		&r.enabled, &r.removed, &r.source, &r.revision, &r.interactions)
	return r, exists, err
}

// put writes r over old, with its lease and what follows from the change.
func (w *Writes) put(ctx context.Context, tx Tx, r row, old row, exists bool) error {
	r.revision = old.revision + 1
	_, err := tx.Exec(ctx, sqlPutRow, r.id, r.typ, r.via, r.config, r.labels, r.targets, r.fingerprint, r.identity, r.enabled, r.source, r.revision, tx.Now(), r.interactions)
	if err != nil {
		return err
	}
	tx.Wake("installation")
	if r.via == "" {
		if _, err := tx.Exec(ctx, sqlAddLease, r.id); err != nil {
			return err
		}
	}
	if !exists {
		return nil
	}
	if old.lease() != r.lease() {
		for _, query := range []string{sqlMoveBacklog, w.reads.d.MoveMessages} {
			if _, err := tx.Exec(ctx, query, r.id, old.lease(), r.lease()); err != nil {
				return err
			}
		}
	}
	if r.via == "" && old.fingerprint != r.fingerprint {
		if _, err := tx.Exec(ctx, sqlResetLease, r.id); err != nil {
			return err
		}
	}
	return nil
}

// consistent checks what must hold between the rows that were put and others, at
// the end of a change: two accounts may be swapped in one.
func consistent(ctx context.Context, tx Tx, put ...row) error {
	for _, r := range put {
		if r.enabled && r.identity != "" {
			var twin string
			taken, err := tx.Get(ctx, sqlTwin, []any{r.typ, r.identity, r.id}, &twin)
			if err != nil {
				return err
			}
			if taken {
				return fault.Errorf(fault.Conflict, "installations %s and %s are the same %s account: disable or remove one of them", r.id, twin, r.typ)
			}
		}
		if r.via == "" {
			continue
		}
		var one int
		carried, err := tx.Get(ctx, sqlCarrier, []any{r.via}, &one)
		if err != nil {
			return err
		}
		if !carried {
			return fault.Errorf(fault.Invalid, "installation %s rides via %s, which is no installation with a connection of its own", r.id, r.via)
		}
	}
	return nil
}

// NoInstallation is the error of an id that no row has.
func NoInstallation(id string) error {
	return fault.Errorf(fault.NotFound, "there is no installation %s; see leasehold installations list", id)
}
