package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

// maxWait caps the wait that a lease carries over owners: not_before is wall
// time, and a clock that was wrong for a while must not cost a day.
const maxWait = 6 * time.Hour

const (
	// A lease is free when it has no owner or its owner's session is gone. Taking it
	// from an owner that died over it counts as a failure, so that a crash loop backs
	// off: one who only waited, or had been connected for long, did not.
	sqlClaim = `UPDATE lease SET fails = fails + (owner IS NOT NULL AND dialled_at > 0 AND NOT EXISTS (
         SELECT 1 FROM link_status c WHERE c.installation_id = lease.id AND c.epoch = lease.epoch AND c.state = 'connected' AND c.since <= $3 - $4)),
       dialled_at = 0, owner = $1, epoch = max(epoch + 1, $3)
 WHERE id IN (SELECT value FROM json_each($2))
   AND (owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = lease.owner))
   AND EXISTS (SELECT 1 FROM session m WHERE m.session_id = $1 AND m.draining = 0)
RETURNING id, epoch, run, fails, not_before`
	sqlBeginTerm = `UPDATE lease SET run = run + 1, dialled_at = $4 WHERE id = $1 AND epoch = $2 AND owner = $3
   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3) RETURNING run`
	sqlGetCursor   = `SELECT value FROM cursor WHERE lease_id = $1 AND identity = $2`
	sqlSaveBackoff = `UPDATE lease SET fails = $4, dialled_at = 0, not_before = $5 WHERE id = $1 AND epoch = $2 AND owner = $3
   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3)`
	sqlChangedSince = `SELECT 1 FROM installation WHERE id = $1 AND fingerprint <> $2`
	sqlRelease      = `UPDATE lease SET owner = NULL WHERE id = $1 AND epoch = $2 AND owner = $3`
)

// Claim implements engine.Store. The epoch is the store's clock in milliseconds,
// or one more than the last: it stays monotone even when a restored backup has
// lost the last grants.
func (s *Store) Claim(ctx context.Context, session string, ids []string) ([]engine.Grant, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, failed("claim leases", err)
	}
	var grants []engine.Grant
	err = s.c.do(ctx, func(w *writer) error {
		return w.each(sqlClaim, []any{session, string(list), w.now, engine.StableAfter.Milliseconds()}, func(rows *sql.Rows) error {
			var g engine.Grant
			var notBefore int64
			if err := rows.Scan(&g.ID, &g.Epoch, &g.Run, &g.Fails, &notBefore); err != nil {
				return err
			}
			g.Wait = min(maxWait, max(0, time.Duration(notBefore-w.now)*time.Millisecond))
			grants = append(grants, g)
			w.bump = true
			return nil
		})
	})
	if err != nil {
		return nil, failed("claim leases", err)
	}
	return grants, nil
}

// BeginTerm implements engine.Store. It may overtake accepts of the term before
// that are still queued: they are fenced by run.
func (s *Store) BeginTerm(ctx context.Context, t channel.Term, identity string) (int64, []byte, error) {
	var run int64
	var cursor []byte
	err := s.c.do(ctx, func(w *writer) error {
		err := w.get(sqlBeginTerm, []any{t.Installation, t.Epoch, t.Owner, w.now}, &run)
		if errors.Is(err, sql.ErrNoRows) {
			return engine.ErrFenced
		}
		if err != nil {
			return err
		}
		err = w.get(sqlGetCursor, []any{t.Installation, identity}, &cursor)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err == nil && cursor == nil:
			cursor = []byte{} // the driver makes nil of an empty value
		}
		return err
	})
	if err != nil {
		return 0, nil, failed("begin a term of "+t.Installation, err)
	}
	return run, cursor, nil
}

// SaveBackoff implements engine.Store.
func (s *Store) SaveBackoff(ctx context.Context, t channel.Term, b engine.Setback) error {
	err := s.c.do(ctx, func(w *writer) error {
		if changed, err := w.exists(sqlChangedSince, t.Installation, b.Fingerprint); err != nil || changed {
			return err
		}
		var notBefore int64
		if b.Wait > 0 {
			notBefore = w.now + min(b.Wait, maxWait).Milliseconds()
		}
		n, err := w.affected(sqlSaveBackoff, t.Installation, t.Epoch, t.Owner, b.Fails, notBefore)
		if err == nil && n == 0 {
			return engine.ErrFenced
		}
		return err
	})
	return failed("save the backoff of "+t.Installation, err)
}

// Release implements engine.Store.
func (s *Store) Release(ctx context.Context, session string, held []engine.Held) ([]string, error) {
	var freed []string
	err := s.c.do(ctx, func(w *writer) error {
		for _, h := range held {
			n, err := w.affected(sqlRelease, h.ID, h.Epoch, session)
			if err != nil {
				return err
			}
			if n > 0 {
				freed = append(freed, h.ID)
			}
		}
		w.bump, w.wake = len(freed) > 0, len(freed) > 0
		return nil
	})
	if err != nil {
		return nil, failed("release leases", err)
	}
	return freed, nil
}
