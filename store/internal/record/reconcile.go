package record

import (
	"context"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/fault"
)

const (
	sqlAnyRow   = `SELECT id FROM installation WHERE NOT removed LIMIT 1`
	sqlFileRows = `SELECT id FROM installation WHERE source = 'file' AND NOT removed`
)

// Reconcile implements admin.Store. Where nothing differs, nothing is written.
func (w *Writes) Reconcile(ctx context.Context, want []admin.Installation) (added, changed, removed []string, err error) {
	d, err := w.reconcileIf(ctx, want, func(context.Context, Tx) (bool, error) { return true, nil })
	return d.added, d.changed, d.removed, err
}

// Seed implements store.Store.
func (w *Writes) Seed(ctx context.Context, want []admin.Installation) (added []string, seeded bool, err error) {
	d, err := w.reconcileIf(ctx, want, func(ctx context.Context, tx Tx) (bool, error) {
		var id string
		some, err := tx.Get(ctx, sqlAnyRow, nil, &id)
		seeded = !some
		return seeded, err
	})
	return d.added, seeded && err == nil, err
}

// reconcileIf makes the rows of the file exactly want, if may says so in the same
// transaction.
func (w *Writes) reconcileIf(ctx context.Context, want []admin.Installation, may func(context.Context, Tx) (bool, error)) (d differences, err error) {
	rows := make([]row, 0, len(want))
	named := make(map[string]bool, len(want))
	for _, i := range want {
		r, err := newRow(i, "file")
		if err != nil {
			return d, fmt.Errorf("apply the configured installations: %w", err)
		}
		if named[r.id] {
			return d, fault.Errorf(fault.Invalid, "apply the configured installations: there are two of id %s", r.id)
		}
		named[r.id] = true
		rows = append(rows, r)
	}
	err = w.change(ctx, func(ctx context.Context, tx Tx) error {
		d = differences{}
		ok, err := may(ctx, tx)
		if err != nil || !ok {
			return err
		}
		d, err = w.reconcile(ctx, tx, rows, named)
		return err
	})
	if err != nil {
		return differences{}, fmt.Errorf("apply the configured installations: %w", err)
	}
	return d, nil
}

// differences are the ids of rows by what was done to them.
type differences struct{ added, changed, removed []string }

func (d *differences) none() bool { return len(d.added)+len(d.changed)+len(d.removed) == 0 }

func (w *Writes) reconcile(ctx context.Context, tx Tx, rows []row, named map[string]bool) (d differences, err error) {
	for _, r := range rows {
		old, exists, err := getRow(ctx, tx, r.id)
		switch {
		case err != nil:
			return d, err
		case exists && !old.removed && old.source != "file":
			return d, fault.Errorf(fault.Conflict, "installation %s was made by the API: remove it there, or give the one in the file another id", r.id)
		case exists && old.same(r):
			continue
		case exists && !old.removed:
			d.changed = append(d.changed, r.id)
		default:
			d.added = append(d.added, r.id)
		}
		if err := w.put(ctx, tx, r, old, exists); err != nil {
			return d, err
		}
	}
	if d.removed, err = removeUnlisted(ctx, tx, named); err != nil || d.none() {
		return d, err
	}
	return d, consistent(ctx, tx, rows...)
}

// removeUnlisted removes the rows of the file that it does not name any more.
func removeUnlisted(ctx context.Context, tx Tx, named map[string]bool) (removed []string, err error) {
	all, err := tx.Column(ctx, sqlFileRows)
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		if named[id] {
			continue
		}
		if _, err := tx.Exec(ctx, sqlRemoveRow, id, true, tx.Now()); err != nil {
			return nil, err
		}
		tx.Wake("installation")
		removed = append(removed, id)
	}
	return removed, nil
}
