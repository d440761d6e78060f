package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/engine"
	"leasehold/store/internal/record"
)

const (
	// Replaced at once is only what is surely dead: this instance's own last session
	// on the same host, whose folder we hold the lock of, or one that has expired.
	sqlOpenSession = `INSERT INTO session(session_id, instance_id, seq, expires_at, host, name, version, weight, draining, opened_at)
SELECT $1, $2, 1, now + $3, $4, $5, $6, $7, false, now FROM leasehold_now() AS now
ON CONFLICT (instance_id) DO UPDATE SET session_id = excluded.session_id, seq = session.seq + 1, expires_at = excluded.expires_at,
       host = excluded.host, name = excluded.name, version = excluded.version, weight = excluded.weight, draining = false, opened_at = excluded.opened_at
 WHERE (session.session_id = $8 AND session.host = excluded.host) OR session.session_id = excluded.session_id OR session.expires_at <= leasehold_now()
RETURNING seq, leasehold_now()`

	sqlDrainSession = `UPDATE session SET draining = true WHERE session_id = $1 RETURNING true`
	sqlEndSession   = `DELETE FROM session WHERE session_id = $1`

	// Beside opening one, the only place where an expiry is compared. A session that is
	// being renewed at this instant is passed over, and looked at again once it is
	// locked.
	sqlReap = `WITH dead AS MATERIALIZED (
  SELECT session_id FROM session WHERE expires_at <= leasehold_now() AND leasehold_now() <= $1 FOR UPDATE SKIP LOCKED
)
DELETE FROM session s USING dead d WHERE s.session_id = d.session_id AND s.expires_at <= leasehold_now()`
)

// OpenSession implements engine.Store.
func (s *Store) OpenSession(ctx context.Context, r engine.SessionRequest) (engine.Session, error) {
	out, err := write(ctx, s, func(ctx context.Context) (engine.Session, error) {
		session := engine.Session{}
		err := s.atomically(ctx, s.pool, step{
			sql:  sqlOpenSession,
			args: []any{r.ID, r.Instance, r.TTL.Milliseconds(), r.Host, plain(r.Name), plain(r.Version), r.Weight, r.Previous},
			scan: oneSession(r.ID, &session),
		}, step{sql: sqlStaysDrained, args: []any{r.ID}})
		if err == nil && session.ID == "" {
			err = engine.ErrIdentityTaken
		}
		return session, err
	})
	if err != nil {
		return engine.Session{}, failed("open session of "+r.Instance, err)
	}
	s.instances.Store(r.ID, r.Instance)
	return out, nil
}

// oneSession reads the one row of a session that was written.
func oneSession(id string, out *engine.Session) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var now int64
		err := rows.Scan(&out.Seq, &now)
		out.ID, out.Now = id, record.Time(now)
		return err
	}
}

// DrainSession implements engine.Store. Draining a session that is gone is
// ErrSessionGone.
func (s *Store) DrainSession(ctx context.Context, id string) error {
	_, err := write(ctx, s, func(ctx context.Context) (bool, error) {
		var there bool
		err := s.atomically(ctx, s.pool, step{sql: sqlDrainSession, args: []any{id}, scan: func(rows pgx.Rows) error { return rows.Scan(&there) }})
		if err == nil && !there {
			err = engine.ErrSessionGone
		}
		return there, err
	})
	return failed("drain the session", err)
}

// EndSession implements engine.Store.
func (s *Store) EndSession(ctx context.Context, id string) error {
	_, err := write(ctx, s, func(ctx context.Context) (bool, error) {
		return true, s.atomically(ctx, s.pool, step{sql: sqlEndSession, args: []any{id}})
	})
	return failed("end the session", err)
}

// Reap implements engine.Store.
func (s *Store) Reap(ctx context.Context, notAfter time.Time) (int, error) {
	n, err := write(ctx, s, func(ctx context.Context) (n int64, err error) {
		err = s.atomically(ctx, s.pool, step{sql: sqlReap, args: []any{notAfter.UnixMilli()}, n: &n})
		return n, err
	})
	return int(n), failed("reap sessions", err)
}

// whyGone tells a session that died from one whose identity another process uses.
func (s *Store) whyGone(ctx context.Context, q querier, id string) error {
	instance, ok := s.instances.Load(id)
	if !ok {
		return engine.ErrSessionGone // not opened here: nothing is known of it
	}
	var used bool
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM session WHERE instance_id = $1)`, instance).Scan(&used)
	if err == nil && used {
		return engine.ErrIdentityTaken
	}
	return errors.Join(engine.ErrSessionGone, err)
}

// querier is a connection, a pool of them, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
