package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"leasehold/store/internal/record"
)

// changing is the committer's transaction as record.Tx asks for it. The contexts are
// not for the statements: see writer.
type changing struct{ w *writer }

var _ record.Tx = changing{}

// change implements record.Change.
func (s *Store) change(ctx context.Context, f func(ctx context.Context, tx record.Tx) error) error {
	return s.c.do(ctx, func(w *writer) error { return f(ctx, changing{w}) })
}

func (c changing) Now() int64  { return c.w.now }
func (c changing) Note()       { c.w.note = true }
func (c changing) Wake(string) { c.w.bump, c.w.wake = true, true }

func (c changing) Exec(_ context.Context, query string, args ...any) (int64, error) {
	return c.w.affected(query, args...)
}

func (c changing) Get(_ context.Context, query string, args []any, into ...any) (bool, error) {
	err := c.w.get(query, args, into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (c changing) Each(_ context.Context, query string, row func(scan func(into ...any) error) error) error {
	return c.w.each(query, nil, func(r *sql.Rows) error { return row(r.Scan) })
}

func (c changing) Column(_ context.Context, query string, args ...any) (all []string, err error) {
	err = c.w.each(query, args, func(r *sql.Rows) error {
		var value string
		err := r.Scan(&value)
		all = append(all, value)
		return err
	})
	return all, err
}
