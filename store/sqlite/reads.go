package sqlite

import (
	"github.com/jmoiron/sqlx"

	"leasehold/store/internal/record"
)

// reads are the questions that a database answers without being written. They
// see what was committed before the call.
type reads struct {
	*record.Reads // those of people
	path          string
	db            *sqlx.DB
	kind          func(error) error // gives an error its kind
}

// open opens the connections.
func (r *reads) open() (err error) {
	if r.db, err = openReads(r.path); err == nil {
		r.Reads = record.Over(r.db, r.kind, dialect(r.path))
	}
	return err
}
