package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	sqlite3 "modernc.org/sqlite/lib"
)

// writer is the one connection that writes. Only the committer's goroutine uses
// it, and always under a context without an end: the driver throws away a
// connection whose statement was cancelled, with everything prepared on it.
type writer struct {
	pool  *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // by text, prepared once

	// Of the transaction that is open.
	now  int64 // the store's clock at its begin, in ms
	bump bool  // it changes what List shows
	wake bool  // somebody should look at once
	note bool  // it is no reason to tend the file or to copy it
}

var background = context.Background()

// connect pins the pool's only connection.
func (w *writer) connect() error {
	conn, err := w.pool.Conn(background)
	if err != nil {
		return err
	}
	w.conn, w.stmts = conn, map[string]*sql.Stmt{}
	return nil
}

// close gives the connection up; broken: it is not used again.
func (w *writer) close(broken bool) error {
	if w.conn == nil {
		return nil
	}
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	if broken {
		// What a discarded connection says on its way out was said before.
		_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
		errs = nil
	} else {
		errs = append(errs, w.conn.Close())
	}
	w.conn, w.stmts = nil, nil
	return errors.Join(errs...)
}

// stmt returns the statement prepared for query.
func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if s, ok := w.stmts[query]; ok {
		return s, nil
	}
	s, err := w.conn.PrepareContext(background, query)
	if err == nil {
		w.stmts[query] = s
	}
	return s, err
}

func (w *writer) exec(query string, args ...any) (sql.Result, error) {
	s, err := w.stmt(query) //nolint:sqlclosecheck // it stays prepared as long as the connection
	if err != nil {
		return nil, err
	}
	return s.ExecContext(background, args...)
}

// affected runs a statement and returns the number of rows that it changed.
func (w *writer) affected(query string, args ...any) (int64, error) {
	res, err := w.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// get scans the single row that query answers with; sql.ErrNoRows: there is none.
func (w *writer) get(query string, args []any, into ...any) error {
	s, err := w.stmt(query) //nolint:sqlclosecheck // it stays prepared as long as the connection
	if err != nil {
		return err
	}
	return s.QueryRowContext(background, args...).Scan(into...)
}

// exists reports whether query answers with a row.
func (w *writer) exists(query string, args ...any) (bool, error) {
	var one int
	err := w.get(query, args, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each calls scan for every row of query.
func (w *writer) each(query string, args []any, scan func(*sql.Rows) error) (err error) {
	s, err := w.stmt(query) //nolint:sqlclosecheck // it stays prepared as long as the connection
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(background, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// begin opens a transaction that has the write lock from the start: one that
// reads first and upgrades fails at once when somebody else wrote meanwhile.
func (w *writer) begin(now int64) error {
	if w.conn == nil {
		if err := w.connect(); err != nil {
			return err
		}
	}
	w.now, w.bump, w.wake, w.note = now, false, false, false
	_, err := w.exec("BEGIN IMMEDIATE")
	return err
}

func (w *writer) commit() error {
	_, err := w.exec("COMMIT")
	return err
}

// rollback ends the open transaction without a trace, if need be by giving up
// the connection. Some errors end it by themselves: then there is none to end.
func (w *writer) rollback() {
	if w.conn == nil {
		return
	}
	_, err := w.exec("ROLLBACK")
	if p, _ := code(err); err != nil && p != sqlite3.SQLITE_ERROR {
		_ = w.close(true)
	}
}

// attempt runs f in a savepoint: with an error it leaves no trace in the
// transaction, which goes on.
func (w *writer) attempt(f func() error) error {
	if _, err := w.exec("SAVEPOINT b"); err != nil {
		return err
	}
	failure := f()
	if failure != nil {
		if _, err := w.exec("ROLLBACK TO b"); err != nil {
			return err
		}
	}
	if _, err := w.exec("RELEASE b"); err != nil {
		return err
	}
	return failure
}

// dataVersion tells whether another connection has committed since it last
// answered: asked on this one, it does not count our own commits.
func (w *writer) dataVersion() (v int64, err error) {
	if w.conn == nil {
		if err := w.connect(); err != nil {
			return 0, err
		}
	}
	err = w.get("PRAGMA data_version", nil, &v)
	return v, err
}
