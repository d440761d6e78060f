package postgres

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/engine"
)

const (
	// Death is the row's absence. An expiry predicate here would let one step of the
	// clock end every node at once. The row is locked by nobody else: fences look at it
	// without a lock.
	sqlRenewSession = `UPDATE session SET seq = seq + 1, expires_at = leasehold_now() + $2 WHERE session_id = $1 RETURNING seq, leasehold_now()`
	sqlLocalTimeout = `SELECT set_config('synchronous_commit', 'on', true), set_config('statement_timeout', $1, true)`

	// defaultRenewTimeout is engine.DefaultTiming's AttemptTimeout.
	defaultRenewTimeout = 3 * time.Second
	// closeWithin bounds a goodbye to a server that may not be there.
	closeWithin = time.Second
)

// renewals is the connection that renews the session, and does nothing else. It is
// dialled when it is needed, and given up after any failure: a renewal that had no
// answer must not keep the next one waiting behind it.
type renewals struct {
	turn chan struct{} // holds one while a renewal uses what follows
	conn *pgx.Conn     // nil = none yet

	mu     sync.Mutex // guards closed
	closed bool
}

// RenewSession implements engine.Store. It runs under the caller's context, alone
// among the writes: what it costs to cancel it is a connection that is ours alone.
func (s *Store) RenewSession(ctx context.Context, id string, ttl time.Duration) (engine.Session, error) {
	r := &s.renewals
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return engine.Session{}, failed("renew the session", ctx.Err())
	}
	out, err := s.renew(ctx, id, ttl)
	return out, failed("renew the session", s.kind(err))
}

func (s *Store) renew(ctx context.Context, id string, ttl time.Duration) (out engine.Session, err error) {
	conn, err := s.renewing(ctx)
	if err != nil {
		return out, err
	}
	err = s.committing(func() error {
		return send(ctx, conn, s.bounded(step{sql: sqlRenewSession, args: []any{id, ttl.Milliseconds()}, scan: oneSession(id, &out)})...)
	})
	if err != nil {
		s.renewals.drop()
		return engine.Session{}, err
	}
	if out.ID == "" {
		return out, s.whyGone(ctx, conn, id)
	}
	return out, nil
}

// bounded adds what makes the server give up, too, where the connection itself
// cannot be told.
func (s *Store) bounded(st step) []step {
	if !s.target.pooled {
		return []step{st}
	}
	ms := strconv.FormatInt(s.opt.RenewTimeout.Milliseconds(), 10)
	return []step{{sql: sqlBegin}, {sql: sqlLocalTimeout, args: []any{ms}}, st, {sql: "COMMIT"}}
}

// renewing returns the connection; the caller has the turn.
func (s *Store) renewing(ctx context.Context) (*pgx.Conn, error) {
	r := &s.renewals
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if r.conn != nil && !r.conn.IsClosed() {
		return r.conn, nil
	}
	conn, err := pgx.ConnectConfig(ctx, s.target.single(s.opt.RenewTimeout))
	if err != nil {
		return nil, err
	}
	r.conn = conn
	return conn, nil
}

// drop gives the connection up without waiting for anybody; the caller has the turn.
func (r *renewals) drop() {
	if r.conn == nil {
		return
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel() // no goodbye
	_ = r.conn.Close(gone)
	r.conn = nil
}

// close ends the connection, after the renewal under way.
func (r *renewals) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = r.conn.Close(ctx)
	r.conn = nil
}
