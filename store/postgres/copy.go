package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"leasehold/store/storecopy"
)

const (
	sqlCopyTables = `SELECT c.relname, a.attname, format_type(a.atttypid, -1), coalesce((SELECT k.n FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n) WHERE k.attnum = a.attnum), 0)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
 WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'schema_info'::regclass)
 ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"`
	sqlStoreID  = `SELECT store_id FROM schema_info WHERE id = 1`
	sqlCounters = `SELECT c.relname, coalesce(s.last_value, 0) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> ''
  JOIN pg_sequences s ON format('%I.%I', s.schemaname, s.sequencename) = pg_get_serial_sequence(c.oid::regclass::text, a.attname)
 WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'schema_info'::regclass) AND c.relname <> 'goose_db_version'`

	sqlCopySource = `SELECT source FROM store_copy WHERE id = 1 FOR UPDATE`
	sqlBeginCopy  = `INSERT INTO store_copy(id, source, writer, begun_at) VALUES (1, $1, $2, leasehold_now()) ON CONFLICT (id) DO UPDATE SET writer = excluded.writer`
	sqlCopyWriter = `SELECT 1 FROM store_copy WHERE id = 1 AND writer = $1 FOR UPDATE`
	sqlEndCopy    = `DELETE FROM store_copy WHERE writer = $1`
	sqlSetCounter = `SELECT setval(pg_get_serial_sequence($1, 'seq'), $2)`
)

// copyEnd is this store as one end of a copy.
type copyEnd struct {
	*Store
	tables []storecopy.Table
	kinds  map[string][]string // of the columns, by table
	writer string              // this copy's name in the mark
}

var _ storecopy.Target = (*copyEnd)(nil)

// Copying returns the store as one end of a copy.
func (s *Store) Copying(ctx context.Context) (storecopy.Target, error) {
	e := &copyEnd{Store: s, kinds: map[string][]string{}, writer: rand.Text()}
	keys := map[string]map[int]string{}
	rows, err := s.pool.Query(ctx, sqlCopyTables)
	if err != nil {
		return nil, failed("list the tables", s.kind(err))
	}
	var table, column, kind string
	var at int
	_, err = pgx.ForEachRow(rows, []any{&table, &column, &kind, &at}, func() error {
		if n := len(e.tables); n == 0 || e.tables[n-1].Name != table {
			e.tables, keys[table] = append(e.tables, storecopy.Table{Name: table}), map[int]string{}
		}
		t := &e.tables[len(e.tables)-1]
		t.Columns, e.kinds[table] = append(t.Columns, column), append(e.kinds[table], kind)
		keys[table][at] = column
		return nil
	})
	for i := range e.tables {
		t := &e.tables[i]
		for at := 1; keys[t.Name][at] != ""; at++ {
			t.Key = append(t.Key, keys[t.Name][at])
		}
	}
	return e, failed("list the tables", s.kind(err))
}

// Tables implements storecopy.Store.
func (e *copyEnd) Tables() []storecopy.Table { return e.tables }

// Kept implements storecopy.Store: a text has neither a NUL nor broken UTF-8.
func (e *copyEnd) Kept(t storecopy.Table, r storecopy.Row) storecopy.Row {
	kept := r
	for i, v := range r {
		text, ok := v.(string)
		if !ok || e.kinds[t.Name][i] != "text" {
			continue
		}
		if clean := plain(text); clean != text {
			if &kept[0] == &r[0] {
				kept = slices.Clone(r)
			}
			kept[i] = clean
		}
	}
	return kept
}

// StoreID implements storecopy.Store.
func (e *copyEnd) StoreID(ctx context.Context) (id string, err error) {
	err = e.pool.QueryRow(ctx, sqlStoreID).Scan(&id)
	return id, failed("read the store's id", e.kind(err))
}

// CountRows implements storecopy.Store.
func (e *copyEnd) CountRows(ctx context.Context, t storecopy.Table) (n int64, err error) {
	err = e.patiently(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM `+storecopy.Names(nil, t.Name)).Scan(&n)
	})
	return n, failed("count", e.kind(err))
}

// Counters implements storecopy.Store.
func (e *copyEnd) Counters(ctx context.Context) (map[string]int64, error) {
	counters := map[string]int64{}
	rows, err := e.pool.Query(ctx, sqlCounters)
	if err != nil {
		return nil, failed("read the counters", e.kind(err))
	}
	var table string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error {
		counters[table] = n
		return nil
	})
	return counters, failed("read the counters", e.kind(err))
}

// ReadRows implements storecopy.Store.
func (e *copyEnd) ReadRows(ctx context.Context, t storecopy.Table, after storecopy.Row, each func(storecopy.Row) error) error {
	key := storecopy.Names(e.byBytes(t), t.Key...)
	query := `SELECT ` + storecopy.Names(nil, t.Columns...) + ` FROM ` + storecopy.Names(nil, t.Name)
	if after != nil {
		query += ` WHERE (` + key + `) > (` + storecopy.Params(len(t.Key)) + `)`
	}
	return e.read(ctx, query+` ORDER BY `+key, after, each)
}

// LastRow implements storecopy.Target.
func (e *copyEnd) LastRow(ctx context.Context, t storecopy.Table) (last storecopy.Row, err error) {
	down := func(column string) string { return e.byBytes(t)(column) + " DESC" }
	query := `SELECT ` + storecopy.Names(nil, t.Columns...) + ` FROM ` + storecopy.Names(nil, t.Name) + ` ORDER BY ` + storecopy.Names(down, t.Key...) + ` LIMIT 1`
	return last, e.read(ctx, query, nil, func(r storecopy.Row) error {
		last = r
		return nil
	})
}

// byBytes has a text column of t compare by its bytes, whatever the database's locale.
func (e *copyEnd) byBytes(t storecopy.Table) func(string) string {
	return func(quoted string) string {
		at := slices.IndexFunc(t.Columns, func(c string) bool { return storecopy.Names(nil, c) == quoted })
		if e.kinds[t.Name][at] == "text" {
			return quoted + ` COLLATE "C"`
		}
		return quoted
	}
}

func (e *copyEnd) read(ctx context.Context, query string, args []any, each func(storecopy.Row) error) error {
	var stop error // the caller's, which is not ours to judge
	err := e.patiently(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() && stop == nil {
			values, err := rows.Values()
			if err != nil {
				return err
			}
			stop = each(common(values))
		}
		rows.Close()
		if stop != nil {
			return stop
		}
		return rows.Err()
	})
	if stop != nil {
		return stop
	}
	return failed("read", e.kind(err))
}

// common makes a row of what the driver returns.
func common(values []any) storecopy.Row {
	r := make(storecopy.Row, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case int16:
			r[i] = int64(v)
		case int32:
			r[i] = int64(v)
		case bool:
			r[i] = int64(0)
			if v {
				r[i] = int64(1)
			}
		case []byte:
			r[i] = string(v)
		default:
			r[i] = v
		}
	}
	return r
}

// patiently runs f in a transaction that may take as long as it takes: a batch waits
// for the other store's disk, too.
func (e *copyEnd) patiently(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		for _, query := range []string{
			`SET LOCAL synchronous_commit = on`, `SET LOCAL idle_in_transaction_session_timeout = 0`, `SET LOCAL statement_timeout = 0`,
		} {
			if _, err := tx.Exec(ctx, query); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

// BeginCopy implements storecopy.Target.
func (e *copyEnd) BeginCopy(ctx context.Context, from string, tables []storecopy.Table) (resumed bool, err error) {
	err = e.patiently(ctx, func(tx pgx.Tx) error {
		var source string
		switch err := tx.QueryRow(ctx, sqlCopySource).Scan(&source); {
		case errors.Is(err, pgx.ErrNoRows):
			for _, t := range append(slices.Clone(tables), storecopy.Table{Name: "session"}) {
				var some bool
				if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+storecopy.Names(nil, t.Name)+`)`).Scan(&some); err != nil {
					return err
				}
				if some {
					return storecopy.NotEmpty(e.target.String(), t.Name)
				}
			}
		case err != nil:
			return err
		case source != from:
			return storecopy.OfAnother(e.target.String())
		default:
			resumed = true
		}
		_, err := tx.Exec(ctx, sqlBeginCopy, from, e.writer)
		return err
	})
	return resumed, failed("begin the copy", e.kind(err))
}

// marked runs f in a transaction, unless another copy has begun. That one waits for
// this transaction's end.
func (e *copyEnd) marked(ctx context.Context, f func(pgx.Tx) error) error {
	return e.patiently(ctx, func(tx pgx.Tx) error {
		var one int
		switch err := tx.QueryRow(ctx, sqlCopyWriter, e.writer).Scan(&one); {
		case errors.Is(err, pgx.ErrNoRows):
			return storecopy.Taken(e.target.String())
		case err != nil:
			return err
		}
		return f(tx)
	})
}

// WriteRows implements storecopy.Target.
func (e *copyEnd) WriteRows(ctx context.Context, t storecopy.Table, rows []storecopy.Row) error {
	kinds := e.kinds[t.Name]
	err := e.marked(ctx, func(tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.Columns, pgx.CopyFromSlice(len(rows), func(n int) ([]any, error) {
			values := slices.Clone(rows[n])
			for i, v := range values {
				switch v := v.(type) {
				case string:
					if kinds[i] == "bytea" {
						values[i] = []byte(v)
					}
				case int64:
					if kinds[i] == "boolean" {
						values[i] = v != 0
					}
				}
			}
			return values, nil
		}))
		return err
	})
	return failed("write", e.kind(err))
}

// ClearTable implements storecopy.Target.
func (e *copyEnd) ClearTable(ctx context.Context, t storecopy.Table) error {
	err := e.marked(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `TRUNCATE `+storecopy.Names(nil, t.Name))
		return err
	})
	return failed("clear", e.kind(err))
}

// EndCopy implements storecopy.Target.
func (e *copyEnd) EndCopy(ctx context.Context, counters map[string]int64) error {
	err := e.marked(ctx, func(tx pgx.Tx) error {
		for table, n := range counters {
			if n == 0 {
				continue // it has given none
			}
			if _, err := tx.Exec(ctx, sqlSetCounter, table, n); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, sqlEndCopy, e.writer)
		return err
	})
	return failed("end the copy", e.kind(err))
}

// unfinished refuses a database that is the target of a copy.
func (s *Store) unfinished(ctx context.Context) error {
	var source string
	switch err := s.pool.QueryRow(ctx, `SELECT source FROM store_copy WHERE id = 1`).Scan(&source); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return storecopy.Unfinished(s.target.String())
}
