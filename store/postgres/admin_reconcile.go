package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

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
	d, err := change(ctx, s, func(ctx context.Context, c *changing) (differences, error) { return c.reconcile(ctx, rows, named) })
	if err != nil {
		return nil, nil, nil, failed("apply the configured installations", err)
	}
	return d.added, d.changed, d.removed, nil
}

// differences are the ids of rows by what was done to them.
type differences struct{ added, changed, removed []string }

func (c *changing) reconcile(ctx context.Context, rows []row, named map[string]bool) (d differences, err error) {
	for _, r := range rows {
		old, exists, err := c.row(ctx, r.id)
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
		if err := c.put(ctx, r, old, exists); err != nil {
			return d, err
		}
	}
	if d.removed, err = c.removeUnlisted(ctx, named); err != nil || c.wake == "" {
		return d, err
	}
	return d, c.consistent(ctx, rows...)
}

// removeUnlisted removes the rows of the file that it does not name any more.
func (c *changing) removeUnlisted(ctx context.Context, named map[string]bool) (removed []string, err error) {
	rows, err := c.conn.Query(ctx, sqlFileRows)
	if err != nil {
		return nil, err
	}
	var id string
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		if !named[id] {
			removed = append(removed, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range removed {
		if _, err := c.exec(ctx, sqlRemoveRow, id, c.now); err != nil {
			return nil, err
		}
		c.wake = "installation"
	}
	return removed, nil
}
