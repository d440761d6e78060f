package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/channel"
	"leasehold/engine"
)

// maxWait caps the wait that a lease carries over owners: a clock that was wrong
// for a while must not cost a day.
const maxWait = 6 * time.Hour

const (
	// A lease is free when it has no owner or its owner's session is gone. Whether it is
	// is asked of one moment, and the answer compared by the epoch once the row is
	// locked: after a wait the database looks at the row again but not at the sessions,
	// and granted one lease twice. not_before gates dialling, not holding.
	//
	// Taking it from an owner that died over it counts as a failure, so that a crash loop
	// backs off: one who only waited, or had been connected for long, did not.
	sqlClaim = `WITH snap AS MATERIALIZED (
  SELECT l.id, l.epoch FROM lease l WHERE l.id = ANY($2::text[])
    AND (l.owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = l.owner))
    AND EXISTS (SELECT 1 FROM session m WHERE m.session_id = $1 AND NOT m.draining)
), locked AS MATERIALIZED (
  SELECT l.id, c.epoch FROM lease l JOIN snap c ON c.id = l.id AND c.epoch = l.epoch FOR NO KEY UPDATE OF l SKIP LOCKED
)
UPDATE lease l SET fails = l.fails + (l.owner IS NOT NULL AND l.dialled_at > 0 AND NOT EXISTS (
         SELECT 1 FROM link_status c WHERE c.installation_id = l.id AND c.epoch = l.epoch AND c.state = 'connected' AND c.since <= leasehold_now() - $3))::int,
       dialled_at = 0, owner = $1, epoch = greatest(l.epoch + 1, leasehold_now())
  FROM locked k WHERE l.id = k.id AND l.epoch = k.epoch
RETURNING l.id, l.epoch, l.run, l.fails, l.not_before - leasehold_now()`

	sqlBeginTerm = `UPDATE lease SET run = run + 1, dialled_at = leasehold_now() WHERE id = $1 AND epoch = $2 AND owner = $3
   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3) RETURNING run`
	sqlGetCursor = `SELECT value FROM cursor WHERE lease_id = $1 AND identity = $2`
	// A change of the fingerprint that is being committed is waited for: it would reset
	// what is saved here before it.
	sqlSaveBackoff = `WITH i AS MATERIALIZED (SELECT id, fingerprint = $6 AS same FROM installation WHERE id = $1 FOR SHARE),
saved AS (
  UPDATE lease l SET fails = $4, dialled_at = 0, not_before = CASE WHEN $5::bigint > 0 THEN leasehold_now() + $5 ELSE 0 END
    FROM i WHERE i.same AND l.id = i.id AND l.epoch = $2 AND l.owner = $3 AND EXISTS (SELECT 1 FROM session WHERE session_id = $3) RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM saved) OR EXISTS (SELECT 1 FROM i WHERE NOT same)`

	// Locked in the order of ids, as accepts lock them. What wakes the others is a
	// constant: a payload of ids would fail the release when it is long.
	sqlRelease = `WITH r AS MATERIALIZED (
  SELECT l.id, r.epoch FROM lease l JOIN unnest($2::text[], $3::bigint[]) AS r(id, epoch)
      ON l.id = r.id AND l.epoch = r.epoch AND l.owner = $1 ORDER BY l.id FOR NO KEY UPDATE OF l
), rel AS (
  UPDATE lease l SET owner = NULL FROM r, (SELECT count(*) AS n FROM r) h
   WHERE h.n > 0 AND l.id = r.id AND l.epoch = r.epoch AND l.owner = $1 RETURNING l.id
), woken AS (SELECT pg_notify('` + notifyChannel + `', 'lease') FROM rel LIMIT 1)
SELECT rel.id FROM rel LEFT JOIN woken ON true`
)

// Claim implements engine.Store. The epoch is the database's clock in
// milliseconds, or one more than the last: it stays monotone even when a failover
// has lost the last grants.
func (s *Store) Claim(ctx context.Context, session string, ids []string) ([]engine.Grant, error) {
	grants, err := write(ctx, s, func(ctx context.Context) ([]engine.Grant, error) {
		var grants []engine.Grant
		err := s.atomically(ctx, s.pool, step{sql: sqlClaim, args: []any{session, ids, engine.StableAfter.Milliseconds()}, scan: func(rows pgx.Rows) error {
			var g engine.Grant
			var wait int64
			err := rows.Scan(&g.ID, &g.Epoch, &g.Run, &g.Fails, &wait)
			g.Wait = min(maxWait, max(0, time.Duration(wait)*time.Millisecond))
			grants = append(grants, g)
			return err
		}})
		return grants, err
	})
	return grants, failed("claim leases", err)
}

// begun is what a term begins with.
type begun struct {
	run    int64
	cursor []byte
}

// BeginTerm implements engine.Store. It waits for the accepts that are being
// committed; the cursor is read after them.
func (s *Store) BeginTerm(ctx context.Context, t channel.Term, identity string) (int64, []byte, error) {
	b, err := write(ctx, s, func(ctx context.Context) (begun, error) {
		var b begun
		err := s.atomically(
			ctx, s.pool,
			step{sql: sqlBeginTerm, args: []any{t.Installation, t.Epoch, t.Owner}, scan: func(rows pgx.Rows) error { return rows.Scan(&b.run) }},
			step{sql: sqlGetCursor, args: []any{t.Installation, identity}, scan: func(rows pgx.Rows) error { return rows.Scan(&b.cursor) }},
		)
		if err == nil && b.run == 0 {
			err = engine.ErrFenced
		}
		return b, err
	})
	return b.run, b.cursor, failed("begin a term of "+t.Installation, err)
}

// SaveBackoff implements engine.Store.
func (s *Store) SaveBackoff(ctx context.Context, t channel.Term, b engine.Setback) error {
	_, err := write(ctx, s, func(ctx context.Context) (ok bool, err error) {
		ms := min(b.Wait, maxWait).Milliseconds()
		err = s.atomically(ctx, s.pool, step{
			sql: sqlSaveBackoff, args: []any{t.Installation, t.Epoch, t.Owner, b.Fails, ms, b.Fingerprint},
			scan: func(rows pgx.Rows) error { return rows.Scan(&ok) },
		})
		if err == nil && !ok {
			err = engine.ErrFenced
		}
		return ok, err
	})
	return failed("save the backoff of "+t.Installation, err)
}

// Release implements engine.Store.
func (s *Store) Release(ctx context.Context, session string, held []engine.Held) ([]string, error) {
	ids, epochs := make([]string, 0, len(held)), make([]int64, 0, len(held))
	for _, h := range held {
		ids, epochs = append(ids, h.ID), append(epochs, h.Epoch)
	}
	freed, err := write(ctx, s, func(ctx context.Context) ([]string, error) {
		var freed []string
		err := s.atomically(ctx, s.pool, step{sql: sqlRelease, args: []any{session, ids, epochs}, scan: func(rows pgx.Rows) error {
			var id string
			err := rows.Scan(&id)
			freed = append(freed, id)
			return err
		}})
		return freed, err
	})
	if len(freed) > 0 {
		s.changes.Wake()
	}
	return freed, failed("release leases", err)
}
