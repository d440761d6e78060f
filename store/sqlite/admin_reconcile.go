package sqlite

import (
	"context"
	"database/sql"

	"leasehold/admin"
	"leasehold/internal/fault"
)

// Reconcile implements admin.Store. Where nothing differs, nothing is written.
func (s *Store) Reconcile(ctx context.Context, want []admin.Installation) (added, changed, removed []string, err error) {
	rows := make([]row, 0, len(want))
	named := make(map[string]bool, len(want))
	for _, i := range want {
		r, err := newRow(i, "file")
		if err != nil {
			return nil, nil, nil, failed("apply the configured installations", err)
		}
		if named[r.id] {
			return nil, nil, nil, fault.Errorf(fault.Invalid, "apply the configured installations: there are two of id %s", r.id)
		}
		named[r.id] = true
		rows = append(rows, r)
	}
	err = s.c.do(ctx, func(w *writer) error {
		added, changed, removed = nil, nil, nil
		for _, r := range rows {
			old, exists, err := getRow(w, r.id)
			switch {
			case err != nil:
				return err
			case exists && !old.removed && old.source != "file":
				return fault.Errorf(fault.Conflict, "installation %s was made by the API: remove it there, or give the one in the file another id", r.id)
			case exists && old.same(r):
				continue
			case exists && !old.removed:
				changed = append(changed, r.id)
			default:
				added = append(added, r.id)
			}
			if err := putRow(w, r, old, exists); err != nil {
				return err
			}
		}
		var err error
		if removed, err = removeUnlisted(w, named); err != nil {
			return err
		}
		if !w.bump {
			return nil
		}
		return consistent(w, rows...)
	})
	if err != nil {
		return nil, nil, nil, failed("apply the configured installations", err)
	}
	return added, changed, removed, nil
}

// removeUnlisted removes the rows of the file that it does not name any more.
func removeUnlisted(w *writer, named map[string]bool) (removed []string, err error) {
	err = w.each(sqlFileRows, nil, func(r *sql.Rows) error {
		var id string
		if err := r.Scan(&id); err != nil {
			return err
		}
		if !named[id] {
			removed = append(removed, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range removed {
		if _, err := w.exec(sqlRemoveRow, id, w.now); err != nil {
			return nil, err
		}
		w.bump, w.wake = true, true
	}
	return removed, nil
}
