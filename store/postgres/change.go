package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// changing is a transaction in which installations are changed. One at a time is
// open in the whole cluster, so that what must hold between rows can be looked up:
// two nodes could each make one of two rows that are the same account.
type changing struct {
	conn *pgxpool.Conn
	now  int64  // the database's clock, once it has the lock
	wake string // the word that tells everybody to look; "" = nothing changed for them
}

const (
	// changeLock is the number of the lock that such a transaction holds: "LSHE".
	changeLock = 1280526405
	sqlAlone   = `SELECT pg_advisory_xact_lock($1)`
	sqlNow     = `SELECT leasehold_now()`
)

// change runs f in such a transaction, and commits it.
func change[T any](ctx context.Context, s *Store, f func(ctx context.Context, c *changing) (T, error)) (T, error) {
	return write(ctx, s, func(ctx context.Context) (out T, err error) {
		err = s.changeAlone(ctx, func(c *changing) error {
			out, err = f(ctx, c)
			return err
		})
		return out, err
	})
}

func (s *Store) changeAlone(ctx context.Context, f func(*changing) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // with a transaction that is open still, it is closed
	c := &changing{conn: conn}
	steps := append(s.opening(), step{sql: sqlAlone, args: []any{int64(changeLock)}},
		step{sql: sqlNow, scan: func(rows pgx.Rows) error { return rows.Scan(&c.now) }})
	if err := send(ctx, conn, steps...); err != nil {
		return err
	}
	if err := f(c); err != nil {
		_, ended := conn.Exec(ctx, "ROLLBACK")
		return errors.Join(err, ended)
	}
	var told []step
	if c.wake != "" {
		told = []step{{sql: sqlNotify, args: []any{c.wake}}}
	}
	err = s.committing(func() error { return send(ctx, conn, append(told, step{sql: "COMMIT"})...) })
	if err == nil && c.wake != "" {
		s.changes.wake()
	}
	return err
}

// exec runs a statement and returns the rows that it affected.
func (c *changing) exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := c.conn.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

// get scans the single row that query answers with; false: there is none.
func (c *changing) get(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	err := c.conn.QueryRow(ctx, query, args...).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
