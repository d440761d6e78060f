package record

import "context"

// Tx is a transaction in which rows are changed. One at a time is open in the whole
// store, so that what must hold between rows can be looked up: two nodes could each
// make one of two rows that are the same account.
type Tx interface {
	// Now is the store's clock, in ms.
	Now() int64
	// Exec runs a statement and returns the rows that it affected.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Get scans the single row that query answers with; false: there is none.
	Get(ctx context.Context, query string, args []any, into ...any) (bool, error)
	// Column returns the only column of each row of query.
	Column(ctx context.Context, query string, args ...any) ([]string, error)
	// Each calls row for each row of query, with what reads its columns.
	Each(ctx context.Context, query string, row func(scan func(into ...any) error) error) error
	// Note makes it a note about what was done, which is no reason to tend the database or
	// to copy it.
	Note()
	// Wake has everybody look, once it is committed. what is the word that other nodes
	// are told.
	Wake(what string)
}

// Change runs f in such a transaction and commits it; with an error of f, nothing of
// it happened. f may be run again after a failure.
type Change func(ctx context.Context, f func(ctx context.Context, tx Tx) error) error

// Writes makes the changes of admin.Store and vault.Store that take no statement of a database's own.
type Writes struct {
	reads  *Reads
	change Change
}

// Through changes what reads answers.
func Through(reads *Reads, change Change) *Writes {
	return &Writes{reads: reads, change: change}
}
