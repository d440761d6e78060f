package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"leasehold/engine"
	"leasehold/store/internal/record"
)

const (
	// Replaced at once is only what is surely dead: this instance's own last session
	// on the same host, whose lock we have, or one that has expired.
	sqlOpenSession = `INSERT INTO session(session_id, instance_id, seq, expires_at, host, name, version, weight, draining, opened_at)
VALUES ($1, $2, 1, $3, $4, $5, $6, $7, 0, $8)
ON CONFLICT (instance_id) DO UPDATE SET session_id = excluded.session_id, seq = session.seq + 1, expires_at = excluded.expires_at,
       host = excluded.host, name = excluded.name, version = excluded.version, weight = excluded.weight, draining = 0, opened_at = excluded.opened_at
 WHERE (session.session_id = $9 AND session.host = excluded.host) OR session.session_id = excluded.session_id OR session.expires_at <= $8
RETURNING seq`
	sqlOthersEnd     = `DELETE FROM session WHERE session_id <> $1`
	sqlLastHost      = `SELECT host FROM schema_info WHERE id = 1`
	sqlSetHost       = `UPDATE schema_info SET host = $1 WHERE id = 1`
	sqlForgetBackoff = `UPDATE lease SET fails = 0, not_before = 0 WHERE fails <> 0 OR not_before <> 0`

	// Death is the row's absence. An expiry predicate here would let one step of the
	// clock end every node at once.
	sqlRenewSession = `UPDATE session SET seq = seq + 1, expires_at = $2 WHERE session_id = $1 RETURNING seq`
	sqlSessionSeq   = `SELECT seq FROM session WHERE session_id = $1`
	sqlInstanceUsed = `SELECT 1 FROM session WHERE instance_id = $1`

	sqlDrainSession = `UPDATE session SET draining = 1 WHERE session_id = $1 AND draining = 0`
	sqlEndSession   = `DELETE FROM session WHERE session_id = $1`
	sqlReap         = `DELETE FROM session WHERE expires_at <= $1`
)

// Sole implements engine.Store: it is true unless the store was opened by Shared.
func (s *Store) Sole() bool { return s.lock != nil }

// OpenSession implements engine.Store. A new boot of the machine is told by the
// part of r.Host before the first slash.
func (s *Store) OpenSession(ctx context.Context, r engine.SessionRequest) (engine.Session, error) {
	out := engine.Session{ID: r.ID}
	err := s.c.do(ctx, func(w *writer) error {
		var expires any
		if s.Sole() {
			if err := becomeSole(w, r); err != nil {
				return err
			}
		} else {
			expires = w.now + r.TTL.Milliseconds()
		}
		err := w.get(sqlOpenSession, []any{r.ID, r.Instance, expires, r.Host, r.Name, r.Version, r.Weight, w.now, r.Previous}, &out.Seq)
		if errors.Is(err, sql.ErrNoRows) {
			return engine.ErrIdentityTaken
		}
		if err == nil {
			_, err = w.exec(sqlStaysDrained, r.ID)
		}
		out.Now = record.Time(w.now)
		w.bump = true
		return err
	})
	if err != nil {
		return engine.Session{}, failed("open session of "+r.Instance, err)
	}
	s.instances.Store(r.ID, r.Instance)
	return out, nil
}

// becomeSole ends every other session: the file lock proves that their processes
// are gone. After a boot of the machine the failures of the one before say
// nothing, and its clock may have been wrong.
func becomeSole(w *writer, r engine.SessionRequest) error {
	if _, err := w.exec(sqlOthersEnd, r.ID); err != nil {
		return err
	}
	var host string
	if err := w.get(sqlLastHost, nil, &host); err != nil {
		return err
	}
	if host == r.Host {
		return nil
	}
	if _, err := w.exec(sqlSetHost, r.Host); err != nil {
		return err
	}
	before, _, _ := strings.Cut(host, "/")
	boot, _, _ := strings.Cut(r.Host, "/")
	if before == boot {
		return nil
	}
	_, err := w.exec(sqlForgetBackoff)
	return err
}

// RenewSession implements engine.Store. A sole owner's session is only looked
// at: it has no expiry, and a store at rest is not written.
func (s *Store) RenewSession(ctx context.Context, id string, ttl time.Duration) (engine.Session, error) {
	out := engine.Session{ID: id}
	err := s.c.do(ctx, func(w *writer) (err error) {
		if s.Sole() {
			err = w.get(sqlSessionSeq, []any{id}, &out.Seq)
		} else {
			err = w.get(sqlRenewSession, []any{id, w.now + ttl.Milliseconds()}, &out.Seq)
		}
		if errors.Is(err, sql.ErrNoRows) {
			return s.whyGone(w, id)
		}
		out.Now = record.Time(w.now)
		return err
	})
	if err != nil {
		return engine.Session{}, failed("renew the session", err)
	}
	return out, nil
}

// whyGone tells a session that died from one whose identity another process uses.
func (s *Store) whyGone(w *writer, id string) error {
	instance, ok := s.instances.Load(id)
	if !ok {
		return engine.ErrSessionGone // not opened here: nothing is known of it
	}
	used, err := w.exists(sqlInstanceUsed, instance)
	if err == nil && used {
		return engine.ErrIdentityTaken
	}
	return errors.Join(engine.ErrSessionGone, err)
}

// DrainSession implements engine.Store. Draining a session that is gone is
// ErrSessionGone.
func (s *Store) DrainSession(ctx context.Context, id string) error {
	err := s.c.do(ctx, func(w *writer) error {
		n, err := w.affected(sqlDrainSession, id)
		if err != nil || n > 0 {
			w.bump = true
			return err
		}
		err = w.get(sqlSessionSeq, []any{id}, &n)
		if errors.Is(err, sql.ErrNoRows) {
			return engine.ErrSessionGone
		}
		return err
	})
	return failed("drain the session", err)
}

// EndSession implements engine.Store.
func (s *Store) EndSession(ctx context.Context, id string) error {
	err := s.c.do(ctx, func(w *writer) error {
		n, err := w.affected(sqlEndSession, id)
		w.bump = n > 0
		return err
	})
	return failed("end the session", err)
}

// Reap implements engine.Store.
func (s *Store) Reap(ctx context.Context, notAfter time.Time) (int, error) {
	var n int64
	err := s.c.do(ctx, func(w *writer) (err error) {
		if w.now > notAfter.UnixMilli() {
			return nil
		}
		n, err = w.affected(sqlReap, w.now)
		w.bump = n > 0
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reap sessions: %w", err)
	}
	return int(n), nil
}
