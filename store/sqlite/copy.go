package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"leasehold/store/storecopy"
)

const (
	sqlCopyTables = `SELECT m.name, p.name, p.type, p.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) p
 WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY m.name, p.name`
	sqlStoreID  = `SELECT store_id FROM schema_info WHERE id = 1`
	sqlCounters = `SELECT name, seq FROM sqlite_sequence WHERE name <> 'goose_db_version'`

	sqlCopySource = `SELECT source FROM store_copy WHERE id = 1`
	sqlBeginCopy  = `INSERT INTO store_copy(id, source, writer, begun_at) VALUES (1, $1, $2, $3) ON CONFLICT (id) DO UPDATE SET writer = excluded.writer`
	sqlCopyWriter = `SELECT 1 FROM store_copy WHERE id = 1 AND writer = $1`
	sqlEndCopy    = `DELETE FROM store_copy WHERE writer = $1`

	sqlForgetCounter = `DELETE FROM sqlite_sequence WHERE name = $1`
	sqlSetCounter    = `INSERT INTO sqlite_sequence(name, seq) VALUES ($1, $2)`
)

// copyEnd is this store as one end of a copy.
type copyEnd struct {
	*Store
	tables []storecopy.Table
	blobs  map[string]bool // TABLE.COLUMN
	writer string          // this copy's name in the mark
}

var _ storecopy.Target = (*copyEnd)(nil)

// Copying returns the store as one end of a copy.
func (s *Store) Copying(ctx context.Context) (storecopy.Target, error) {
	e := &copyEnd{Store: s, blobs: map[string]bool{}, writer: rand.Text()}
	type keyed struct {
		column string
		at     int
	}
	keys := map[string][]keyed{}
	err := s.query(ctx, sqlCopyTables, nil, func(rows *sql.Rows) error {
		var table, column, kind string
		var pk int
		if err := rows.Scan(&table, &column, &kind, &pk); err != nil {
			return err
		}
		if n := len(e.tables); n == 0 || e.tables[n-1].Name != table {
			e.tables = append(e.tables, storecopy.Table{Name: table})
		}
		t := &e.tables[len(e.tables)-1]
		t.Columns = append(t.Columns, column)
		e.blobs[table+"."+column] = kind == "BLOB"
		if pk > 0 {
			keys[table] = append(keys[table], keyed{column, pk})
		}
		return nil
	})
	for i := range e.tables {
		t := &e.tables[i]
		slices.SortFunc(keys[t.Name], func(a, b keyed) int { return a.at - b.at })
		for _, k := range keys[t.Name] {
			t.Key = append(t.Key, k.column)
		}
	}
	return e, failed("list the tables", s.judge(err))
}

// query calls scan for every row of a question.
func (s *Store) query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) (err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
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

// Tables implements storecopy.Store.
func (e *copyEnd) Tables() []storecopy.Table { return e.tables }

// Kept implements storecopy.Store: every text is kept as it is.
func (e *copyEnd) Kept(_ storecopy.Table, r storecopy.Row) storecopy.Row { return r }

// StoreID implements storecopy.Store.
func (e *copyEnd) StoreID(ctx context.Context) (id string, err error) {
	err = e.db.GetContext(ctx, &id, sqlStoreID)
	return id, failed("read the store's id", e.judge(err))
}

// CountRows implements storecopy.Store.
func (e *copyEnd) CountRows(ctx context.Context, t storecopy.Table) (n int64, err error) {
	err = e.db.GetContext(ctx, &n, `SELECT count(*) FROM `+storecopy.Names(nil, t.Name))
	return n, failed("count", e.judge(err))
}

// Counters implements storecopy.Store.
func (e *copyEnd) Counters(ctx context.Context) (map[string]int64, error) {
	counters := map[string]int64{}
	err := e.query(ctx, sqlCounters, nil, func(rows *sql.Rows) error {
		var table string
		var n int64
		err := rows.Scan(&table, &n)
		counters[table] = n
		return err
	})
	return counters, failed("read the counters", e.judge(err))
}

// ReadRows implements storecopy.Store.
func (e *copyEnd) ReadRows(ctx context.Context, t storecopy.Table, after storecopy.Row, each func(storecopy.Row) error) error {
	query := `SELECT ` + storecopy.Names(nil, t.Columns...) + ` FROM ` + storecopy.Names(nil, t.Name)
	if after != nil {
		query += ` WHERE (` + storecopy.Names(nil, t.Key...) + `) > (` + storecopy.Params(len(t.Key)) + `)`
	}
	return e.read(ctx, query+` ORDER BY `+storecopy.Names(nil, t.Key...), len(t.Columns), after, each)
}

// LastRow implements storecopy.Target.
func (e *copyEnd) LastRow(ctx context.Context, t storecopy.Table) (last storecopy.Row, err error) {
	query := `SELECT ` + storecopy.Names(nil, t.Columns...) + ` FROM ` + storecopy.Names(nil, t.Name) + ` ORDER BY ` + storecopy.Names(descending, t.Key...) + ` LIMIT 1`
	return last, e.read(ctx, query, len(t.Columns), nil, func(r storecopy.Row) error {
		last = r
		return nil
	})
}

func descending(column string) string { return column + " DESC" }

func (e *copyEnd) read(ctx context.Context, query string, columns int, args []any, each func(storecopy.Row) error) error {
	var stop error // the caller's, which is not ours to judge
	err := e.query(ctx, query, args, func(rows *sql.Rows) error {
		r := make(storecopy.Row, columns)
		into := make([]any, columns)
		for i := range r {
			into[i] = &r[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range r {
			if b, ok := v.([]byte); ok {
				r[i] = string(b)
			}
		}
		stop = each(r)
		return stop
	})
	if stop != nil {
		return stop
	}
	return failed("read", e.judge(err))
}

// BeginCopy implements storecopy.Target.
func (e *copyEnd) BeginCopy(ctx context.Context, from string, tables []storecopy.Table) (resumed bool, err error) {
	err = e.c.do(ctx, func(w *writer) error {
		var source string
		switch err := w.get(sqlCopySource, nil, &source); {
		case errors.Is(err, sql.ErrNoRows):
			for _, t := range append(slices.Clone(tables), storecopy.Table{Name: "session"}) {
				if some, err := w.exists(`SELECT 1 FROM ` + storecopy.Names(nil, t.Name) + ` LIMIT 1`); err != nil || some {
					return errors.Join(err, storecopy.NotEmpty(e.path, t.Name))
				}
			}
		case err != nil:
			return err
		case source != from:
			return storecopy.OfAnother(e.path)
		default:
			resumed = true
		}
		_, err := w.exec(sqlBeginCopy, from, e.writer, w.now)
		return err
	})
	return resumed, failed("begin the copy", err)
}

// marked refuses what another copy than the one that began last would write.
func (e *copyEnd) marked(w *writer) error {
	ours, err := w.exists(sqlCopyWriter, e.writer)
	if err == nil && !ours {
		err = storecopy.Taken(e.path)
	}
	return err
}

// WriteRows implements storecopy.Target.
func (e *copyEnd) WriteRows(ctx context.Context, t storecopy.Table, rows []storecopy.Row) error {
	values := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		values[i] = fmt.Sprintf("$%d", i+1)
		if e.blobs[t.Name+"."+column] {
			values[i] = `CAST(` + values[i] + ` AS BLOB)`
		}
	}
	insert := `INSERT INTO ` + storecopy.Names(nil, t.Name) + `(` + storecopy.Names(nil, t.Columns...) + `) VALUES (` + strings.Join(values, ", ") + `)`
	return failed("write", e.c.do(ctx, func(w *writer) error {
		if err := e.marked(w); err != nil {
			return err
		}
		for _, r := range rows {
			if _, err := w.exec(insert, r...); err != nil {
				return err
			}
		}
		return nil
	}))
}

// ClearTable implements storecopy.Target.
func (e *copyEnd) ClearTable(ctx context.Context, t storecopy.Table) error {
	return failed("clear", e.c.do(ctx, func(w *writer) error {
		if err := e.marked(w); err != nil {
			return err
		}
		_, err := w.exec(`DELETE FROM ` + storecopy.Names(nil, t.Name))
		return err
	}))
}

// EndCopy implements storecopy.Target.
func (e *copyEnd) EndCopy(ctx context.Context, counters map[string]int64) error {
	return failed("end the copy", e.c.do(ctx, func(w *writer) error {
		if err := e.marked(w); err != nil {
			return err
		}
		for table, n := range counters {
			if _, err := w.exec(sqlForgetCounter, table); err != nil {
				return err
			}
			if _, err := w.exec(sqlSetCounter, table, n); err != nil {
				return err
			}
		}
		w.bump, w.wake = true, true
		_, err := w.exec(sqlEndCopy, e.writer)
		return err
	}))
}

// unfinished refuses a database that is the target of a copy.
func unfinished(ctx context.Context, db *sql.DB, path string) error {
	var source string
	switch err := db.QueryRowContext(ctx, sqlCopySource).Scan(&source); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return storecopy.Unfinished(path)
}
