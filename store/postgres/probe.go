package postgres

import (
	"context"
	"crypto/rand"
)

const (
	// A page of noise, which nothing makes smaller: the server's log must take it.
	probeBytes    = 8192
	sqlProbe      = `INSERT INTO probe(id, filler) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET filler = excluded.filler`
	sqlProbeClean = `DELETE FROM probe WHERE id = 1`
)

// Probe implements engine.Store. The disk, and the room on it, are the server's.
func (s *Store) Probe(ctx context.Context) error {
	filler := make([]byte, probeBytes)
	_, _ = rand.Read(filler) // it never fails: crypto/rand ends the program instead
	_, err := write(ctx, s, func(ctx context.Context) (bool, error) {
		return true, s.atomically(ctx, s.pool, step{sql: sqlProbe, args: []any{filler}}, step{sql: sqlProbeClean})
	})
	return failed("probe the store", err)
}
