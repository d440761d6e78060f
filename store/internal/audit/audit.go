// Package audit looks for writes that a fence should have stopped, in what a store
// keeps. It is a weak witness: a stale write that found no newer event leaves no
// trace.
package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"

	"leasehold/store/maintenance"
)

// page is how many events one audit reads, to keep its read short.
const page = 50_000

const sqlAudit = `SELECT seq, lease_id, epoch FROM event WHERE seq > $1 ORDER BY seq LIMIT $2`

// Auditor remembers where the last audit ended. The zero value has seen nothing; it
// is safe for concurrent use.
type Auditor struct {
	mu      sync.Mutex // guards what follows
	through int64
	epochs  map[string]int64 // the newest of each lease, up to through
}

// Audit looks at the events after seq since for one that carries an earlier epoch
// than an event of its lease before it. What it can see is the order of the events
// that are kept, from since on, and before it as far as the last call went. kind
// gives an error of db its kind.
func (a *Auditor) Audit(ctx context.Context, db *sqlx.DB, kind func(error) error, since int64) (out maintenance.Audited, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.through != since || a.epochs == nil {
		a.epochs = map[string]int64{}
	}
	out.Through = since
	if err := a.read(ctx, db, since, &out); err != nil {
		a.epochs = nil // it holds what this call did not get to tell
		return out, fmt.Errorf("audit the epochs: %w", kind(err))
	}
	out.More = out.Events == page
	a.through = out.Through
	return out, nil
}

func (a *Auditor) read(ctx context.Context, db *sqlx.DB, since int64, out *maintenance.Audited) (err error) {
	rows, err := db.QueryContext(ctx, sqlAudit, since, page)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v maintenance.Violation
		if err := rows.Scan(&v.Seq, &v.Lease, &v.Epoch); err != nil {
			return err
		}
		if v.Before = a.epochs[v.Lease]; v.Before > v.Epoch {
			out.Violations = append(out.Violations, v)
		}
		a.epochs[v.Lease] = max(v.Before, v.Epoch)
		out.Through = v.Seq
		out.Events++
	}
	return rows.Err()
}
