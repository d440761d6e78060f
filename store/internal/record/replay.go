package record

import (
	"context"
	"fmt"

	"leasehold/admin"
)

// Replayable implements admin.Store.
func (r *Reads) Replayable(ctx context.Context, q admin.ReplayQuery) (found []admin.Delivery, next int64, err error) {
	var rows []struct {
		DeliveryRow
		Chosen bool
	}
	q.Limit = page(q.Limit)
	query, args := r.d.Replayable(q)
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, 0, fmt.Errorf("list what can be replayed: %w", r.kind(err))
	}
	for i := range rows {
		if rows[i].Chosen {
			found = append(found, rows[i].Delivery())
		}
	}
	if len(rows) == q.Limit {
		next = rows[q.Limit-1].EventSeq
	}
	return found, next, nil
}
