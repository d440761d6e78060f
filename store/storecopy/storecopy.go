// Package storecopy copies what one store holds into another, of whatever
// database: a box that has outgrown its file moves to a server.
//
// A copy is whole or says so. Tables go over in batches, each one transaction, in
// the order of their keys; a copy that was stopped or killed goes on behind the last
// row that arrived. At the end both sides are read again and compared, row by row, and
// a table that differs is copied once more. Until then the target is marked, and no
// program runs on it.
//
// Sessions stay behind, and so leases arrive free, with their epochs: what the target
// grants is newer than whatever was granted before. It is a store of its own, with its
// own id.
package storecopy

import (
	"context"
	"fmt"
	"slices"

	"leasehold/internal/fault"
)

// Table is a table that holds something to copy.
type Table struct {
	Name    string
	Columns []string // by name
	Key     []string // those of the primary key, in its order
}

// Row is one row of a table, in the order of its columns. A value is an int64, a
// string or nil; truth is 0 or 1, and a string holds any bytes.
type Row []any

// Store is a database that can be read for a copy.
type Store interface {
	// StoreID tells one store from another.
	StoreID(ctx context.Context) (string, error)
	// Tables are those that there are.
	Tables() []Table
	// CountRows counts a table's rows.
	CountRows(ctx context.Context, t Table) (int64, error)
	// ReadRows calls each for the rows behind the key after, nil = for all, in the order
	// of the key, in which text compares by its bytes. Little is in memory at a time.
	ReadRows(ctx context.Context, t Table, after Row, each func(Row) error) error
	// Counters are the last numbers that tables have given to their rows.
	Counters(ctx context.Context) (map[string]int64, error)
	// Kept is a row as this store would give it back: not every database keeps every
	// text.
	Kept(t Table, r Row) Row
}

// Target is a database that can be filled. Until EndCopy it is marked, and opened for
// nothing else.
type Target interface {
	Store
	// BeginCopy marks the target as the unfinished copy of the store from. resumed: it
	// was that already. fault.Conflict: one of the tables holds something, or it is the
	// unfinished copy of another store. Whoever began before writes no more.
	BeginCopy(ctx context.Context, from string, tables []Table) (resumed bool, err error)
	// LastRow returns the row with the last key, nil = there is none.
	LastRow(ctx context.Context, t Table) (Row, error)
	// WriteRows adds rows, all of them or none. fault.Conflict: another copy has begun.
	WriteRows(ctx context.Context, t Table, rows []Row) error
	// ClearTable deletes a table's rows.
	ClearTable(ctx context.Context, t Table) error
	// EndCopy sets the counters, and takes the mark away.
	EndCopy(ctx context.Context, counters map[string]int64) error
}

// left are the tables that stay behind, and why.
var left = map[string]string{
	"session":          "the processes that ran on the old store do not run on the new one",
	"schema_info":      "the new store is its own, with its own id",
	"schema_file":      "the history of its own schema",
	"goose_db_version": "the same",
	"probe":            "it holds nothing",
	"store_copy":       "the mark of an unfinished copy",
}

// emptied are columns that arrive empty: nobody holds a lease in the new store.
var emptied = map[string]string{"lease": "owner"}

const (
	batchRows  = 1000    // the rows of one transaction
	batchBytes = 4 << 20 // and their size; one larger row is a batch of its own
)

// Progress is how far a copy has come.
type Progress struct {
	Step        string // copying, comparing
	Table       string
	Rows, Total int64 // of that table
}

// Copied is what a copy did.
type Copied struct {
	Resumed bool          `json:"resumed"` // it went on with an earlier one
	Again   []string      `json:"again,omitempty"`
	Tables  []CopiedTable `json:"tables"`
}

// CopiedTable is a table that both stores hold alike.
type CopiedTable struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"` // of the rows, in the order of their key
}

// Copy copies what from holds into to, which must be empty or an unfinished copy of
// from, and compares the two. Nobody may write to from meanwhile. When it returns nil,
// everything is on the target's disk and alike. It can be run again after any error.
func Copy(ctx context.Context, from Store, to Target, tell func(Progress)) (done Copied, err error) {
	c := &copier{from: from, to: to, tell: tell}
	if c.tables, err = shared(from, to); err != nil {
		return done, err
	}
	id, err := from.StoreID(ctx)
	if err != nil {
		return done, err
	}
	switch same, err := to.StoreID(ctx); {
	case err != nil:
		return done, err
	case same == id:
		return done, fault.Errorf(fault.Invalid, "the two are one database; name another one, or look at store.url, which the variable LEASEHOLD_STORE_URL may set")
	}
	if done.Resumed, err = to.BeginCopy(ctx, id, c.tables); err != nil {
		return done, err
	}
	for _, t := range c.tables {
		if err := c.carry(ctx, t); err != nil {
			return done, fmt.Errorf("copy the table %s: %w", t.Name, err)
		}
	}
	for _, t := range c.tables {
		table, again, err := c.settle(ctx, t)
		if err != nil {
			return done, fmt.Errorf("compare the table %s: %w", t.Name, err)
		}
		if again {
			done.Again = append(done.Again, t.Name)
		}
		done.Tables = append(done.Tables, table)
	}
	counters, err := from.Counters(ctx)
	if err != nil {
		return done, err
	}
	return done, to.EndCopy(ctx, counters)
}

// shared are the tables to copy. Both stores have been brought to the schema of this
// program, so that a difference is a mistake of ours.
func shared(from, to Store) ([]Table, error) {
	var tables []Table
	theirs := to.Tables()
	for _, t := range from.Tables() {
		if _, stays := left[t.Name]; stays {
			continue
		}
		at := slices.IndexFunc(theirs, func(o Table) bool { return o.Name == t.Name })
		if at < 0 || !slices.Equal(theirs[at].Columns, t.Columns) || !slices.Equal(theirs[at].Key, t.Key) {
			return nil, fault.Errorf(fault.Internal, "the two stores have not the same table %s: please report it", t.Name)
		}
		tables = append(tables, t)
	}
	return tables, nil
}
