package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/fault"
)

const (
	sqlGetRow = `SELECT type, via, config, labels, targets, fingerprint, identity, enabled, removed, source, revision
  FROM installation WHERE id = $1`
	sqlPutRow = `INSERT INTO installation(id, type, via, config, labels, targets, fingerprint, identity, enabled, source, revision, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
ON CONFLICT (id) DO UPDATE SET type = excluded.type, via = excluded.via, config = excluded.config, labels = excluded.labels, targets = excluded.targets,
       fingerprint = excluded.fingerprint, identity = excluded.identity, enabled = excluded.enabled, removed = 0, source = excluded.source,
       revision = excluded.revision, updated_at = excluded.updated_at`
	sqlEnableRow  = `UPDATE installation SET enabled = $2, revision = revision + 1, updated_at = $3 WHERE id = $1`
	sqlRemoveRow  = `UPDATE installation SET removed = 1, revision = revision + 1, updated_at = $2 WHERE id = $1`
	sqlFileRows   = `SELECT id FROM installation WHERE source = 'file' AND removed = 0`
	sqlAddLease   = `INSERT INTO lease(id) VALUES ($1) ON CONFLICT (id) DO NOTHING`
	sqlResetLease = `UPDATE lease SET fails = 0, not_before = 0 WHERE id = $1`
	// What waits goes with an installation to its new carrier.
	sqlMoveBacklog = `UPDATE delivery SET lease_id = $3 WHERE state = 0 AND lease_id = $2
   AND event_seq IN (SELECT seq FROM event WHERE installation_id = $1)`
	sqlMoveMessages = `UPDATE message INDEXED BY message_waiting SET lease_id = $3 WHERE state < 2 AND state = 0 AND lease_id = $2 AND installation_id = $1`

	sqlTwin    = `SELECT id FROM installation WHERE type = $1 AND identity = $2 AND identity <> '' AND id <> $3 AND enabled = 1 AND removed = 0 LIMIT 1`
	sqlCarrier = `SELECT 1 FROM installation WHERE id = $1 AND via = '' AND removed = 0`
)

// row is an installation as it is stored.
type row struct {
	id, typ, via            string
	config, labels, targets string
	fingerprint, identity   string
	enabled                 bool
	removed                 bool
	source                  string
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
		fingerprint: i.Fingerprint, identity: i.Identity, enabled: i.Enabled, source: source,
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
func getRow(w *writer, id string) (row, bool, error) {
	r := row{id: id}
	err := w.get(sqlGetRow, []any{id}, &r.typ, &r.via, &r.config, &r.labels, &r.targets, &r.fingerprint, &r.identity,
		&r.enabled, &r.removed, &r.source, &r.revision)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, false, nil
	}
	return r, err == nil, err
}

// putRow writes r over old, with its lease and what follows from the change.
func putRow(w *writer, r row, old row, exists bool) error {
	r.revision = old.revision + 1
	_, err := w.exec(sqlPutRow, r.id, r.typ, r.via, r.config, r.labels, r.targets, r.fingerprint, r.identity, r.enabled, r.source, r.revision, w.now)
	if err != nil {
		return err
	}
	w.bump, w.wake = true, true
	if r.via == "" {
		if _, err := w.exec(sqlAddLease, r.id); err != nil {
			return err
		}
	}
	if !exists {
		return nil
	}
	if old.lease() != r.lease() {
		for _, query := range []string{sqlMoveBacklog, sqlMoveMessages} {
			if _, err := w.exec(query, r.id, old.lease(), r.lease()); err != nil {
				return err
			}
		}
	}
	if r.via == "" && old.fingerprint != r.fingerprint {
		if _, err := w.exec(sqlResetLease, r.id); err != nil {
			return err
		}
	}
	return nil
}

// consistent checks what must hold between the rows that were put and others, at
// the end of a change: two accounts may be swapped in one.
func consistent(w *writer, put ...row) error {
	for _, r := range put {
		if r.enabled && r.identity != "" {
			var twin string
			err := w.get(sqlTwin, []any{r.typ, r.identity, r.id}, &twin)
			if err == nil {
				return fault.Errorf(fault.Conflict, "installations %s and %s are the same %s account: disable or remove one of them", r.id, twin, r.typ)
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		if r.via == "" {
			continue
		}
		carried, err := w.exists(sqlCarrier, r.via)
		if err != nil {
			return err
		}
		if !carried {
			return fault.Errorf(fault.Invalid, "installation %s rides via %s, which is no installation with a connection of its own", r.id, r.via)
		}
	}
	return nil
}

func noInstallation(id string) error {
	return fault.Errorf(fault.NotFound, "there is no installation %s", id)
}

// PutInstallation implements admin.Store. A removed row comes back with a new
// revision, and with the position of its stream if it is the same account.
func (s *Store) PutInstallation(ctx context.Context, i admin.Installation, revision int64) (admin.Installation, error) {
	r, err := newRow(i, i.Source)
	if err != nil {
		return admin.Installation{}, err
	}
	err = s.c.do(ctx, func(w *writer) error {
		old, exists, err := getRow(w, r.id)
		if err != nil {
			return err
		}
		there := exists && !old.removed
		switch {
		case revision == 0 && there:
			return fault.Errorf(fault.Conflict, "there is an installation %s already", r.id)
		case revision != 0 && !there:
			return noInstallation(r.id)
		case revision != 0 && old.revision != revision:
			return fault.Errorf(fault.Conflict, "installation %s was changed meanwhile: it has revision %d, not %d", r.id, old.revision, revision)
		}
		if err := putRow(w, r, old, exists); err != nil {
			return err
		}
		return consistent(w, r)
	})
	if err != nil {
		return admin.Installation{}, failed("put installation "+r.id, err)
	}
	return s.Installation(ctx, r.id)
}

// SetEnabled implements admin.Store. Setting what is set already writes nothing.
func (s *Store) SetEnabled(ctx context.Context, id string, enabled bool) error {
	err := s.c.do(ctx, func(w *writer) error {
		old, exists, err := getRow(w, id)
		switch {
		case err != nil:
			return err
		case !exists || old.removed:
			return noInstallation(id)
		case old.enabled == enabled:
			return nil
		}
		w.bump, w.wake = true, true
		if _, err := w.exec(sqlEnableRow, id, enabled, w.now); err != nil {
			return err
		}
		old.enabled, old.via = enabled, "" // where it rides stays as it is
		return consistent(w, old)
	})
	return failed("enable or disable installation "+id, err)
}

// RemoveInstallation implements admin.Store.
func (s *Store) RemoveInstallation(ctx context.Context, id string) error {
	err := s.c.do(ctx, func(w *writer) error {
		old, exists, err := getRow(w, id)
		switch {
		case err != nil:
			return err
		case !exists || old.removed:
			return noInstallation(id)
		}
		w.bump, w.wake = true, true
		_, err = w.exec(sqlRemoveRow, id, w.now)
		return err
	})
	return failed("remove installation "+id, err)
}
