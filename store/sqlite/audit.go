package sqlite

import (
	"context"

	"leasehold/store/maintenance"
)

// Audit implements store.Store; see audit.Auditor.
func (s *Store) Audit(ctx context.Context, since int64) (maintenance.Audited, error) {
	return s.audit.Audit(ctx, s.db, s.judge, since)
}
