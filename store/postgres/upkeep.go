package postgres

import (
	"context"

	"leasehold/store/maintenance"
)

// sqlBytes is the size of the database on the server's disk, in bytes.
const sqlBytes = `SELECT pg_database_size(current_database())`

// Upkeep looks at the size of the database. The server tends it by itself:
// autovacuum, checkpoints and checks are its own, and its disk is not seen from
// here.
func (s *Store) Upkeep(ctx context.Context) (maintenance.Tended, error) {
	var t maintenance.Tended
	err := s.pool.QueryRow(ctx, sqlBytes).Scan(&t.Bytes)
	return t, failed("look at the database's size", s.kind(err))
}
