package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"leasehold/store/maintenance"
)

// auditPage is how many events one audit reads, to keep its read short.
const auditPage = 50_000

const sqlAudit = `SELECT seq, lease_id, epoch FROM event WHERE seq > $1 ORDER BY seq LIMIT $2`

// auditor remembers where the last audit ended.
type auditor struct {
	mu      sync.Mutex // guards what follows
	through int64
	epochs  map[string]int64 // the newest of each lease, up to through
}

// Audit looks at the events after seq since for one that carries an earlier epoch
// than an event of its lease before it: a write that its fence should have
// stopped. It is a weak witness, since a stale write that found no newer event
// leaves no trace, and one that was being committed during the call is not looked
// at again; what it can see is the order of the events that are kept, from since
// on, and before it as far as the last call went.
func (s *Store) Audit(ctx context.Context, since int64) (maintenance.Audited, error) {
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	if s.audit.through != since || s.audit.epochs == nil {
		s.audit.epochs = map[string]int64{}
	}
	out := maintenance.Audited{Through: since}
	var v maintenance.Violation
	rows, err := s.pool.Query(ctx, sqlAudit, since, auditPage)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&v.Seq, &v.Lease, &v.Epoch}, func() error {
			if v.Before = s.audit.epochs[v.Lease]; v.Before > v.Epoch {
				out.Violations = append(out.Violations, v)
			}
			s.audit.epochs[v.Lease] = max(v.Before, v.Epoch)
			out.Through = v.Seq
			out.Events++
			return nil
		})
	}
	if err != nil {
		s.audit.epochs = nil // it holds what this call did not get to tell
		return out, failed("audit the epochs", s.kind(err))
	}
	out.More = out.Events == auditPage
	s.audit.through = out.Through
	return out, nil
}
