package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"leasehold/store/internal/record"
)

// changing is such a transaction as record.Tx describes. One at a time is open in the
// whole cluster.
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

// change implements record.Change.
func (s *Store) change(ctx context.Context, f func(ctx context.Context, tx record.Tx) error) error {
	_, err := change(ctx, s, func(ctx context.Context, c *changing) (struct{}, error) { return struct{}{}, f(ctx, c) })
	return err
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
		s.changes.Wake()
	}
	return err
}

var _ record.Tx = (*changing)(nil)

// Now implements record.Tx.
func (c *changing) Now() int64 { return c.now }

// Note implements record.Tx. The server tends itself.
func (c *changing) Note() {}

// Wake implements record.Tx.
func (c *changing) Wake(what string) { c.wake = what }

// Exec implements record.Tx.
func (c *changing) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := c.conn.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

// Get implements record.Tx.
func (c *changing) Get(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	err := c.conn.QueryRow(ctx, query, args...).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Each implements record.Tx.
func (c *changing) Each(ctx context.Context, query string, row func(scan func(into ...any) error) error) error {
	rows, err := c.conn.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Column implements record.Tx.
func (c *changing) Column(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := c.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
