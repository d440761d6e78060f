package record

import (
	"context"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/fault"
)

// PutInstallation implements admin.Store. A removed row comes back with a new
// revision, and with the position of its stream if it is the same account.
func (w *Writes) PutInstallation(ctx context.Context, i admin.Installation, revision int64) (admin.Installation, error) {
	r, err := newRow(i, i.Source)
	if err != nil {
		return admin.Installation{}, err
	}
	err = w.change(ctx, func(ctx context.Context, tx Tx) error {
		old, exists, err := getRow(ctx, tx, r.id)
		if err != nil {
			return err
		}
		there := exists && !old.removed
		switch {
		case revision == 0 && there:
			return fault.Errorf(fault.Conflict, "there is an installation %s already", r.id)
		case revision != 0 && !there:
			return NoInstallation(r.id)
		case revision != 0 && old.revision != revision:
			return fault.Errorf(fault.Conflict, "installation %s was changed meanwhile: it has revision %d, not %d", r.id, old.revision, revision)
		}
		if err := w.put(ctx, tx, r, old, exists); err != nil {
			return err
		}
		return consistent(ctx, tx, r)
	})
	if err != nil {
		return admin.Installation{}, fmt.Errorf("put installation %s: %w", r.id, err)
	}
	return w.reads.Installation(ctx, r.id)
}

// SetEnabled implements admin.Store. Setting what is set already writes nothing.
func (w *Writes) SetEnabled(ctx context.Context, id string, enabled bool) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		old, exists, err := getRow(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case !exists || old.removed:
			return NoInstallation(id)
		case old.enabled == enabled:
			return nil
		}
		tx.Wake("installation")
		if _, err := tx.Exec(ctx, sqlEnableRow, id, enabled, tx.Now()); err != nil {
			return err
		}
		old.enabled, old.via = enabled, "" // where it rides stays as it is
		return consistent(ctx, tx, old)
	})
	if err != nil {
		return fmt.Errorf("enable or disable installation %s: %w", id, err)
	}
	return nil
}

// RemoveInstallation implements admin.Store.
func (w *Writes) RemoveInstallation(ctx context.Context, id string) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		old, exists, err := getRow(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case !exists || old.removed:
			return NoInstallation(id)
		}
		tx.Wake("installation")
		_, err = tx.Exec(ctx, sqlRemoveRow, id, true, tx.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("remove installation %s: %w", id, err)
	}
	return nil
}
