package postgres

import (
	"context"

	"leasehold/store/maintenance"
)

// Audit implements store.Store; see audit.Auditor. What was being committed during
// the call is not looked at again.
func (s *Store) Audit(ctx context.Context, since int64) (maintenance.Audited, error) {
	return s.audit.Audit(ctx, s.db, s.kind, since)
}
