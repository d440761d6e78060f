package postgres

import (
	"github.com/jmoiron/sqlx"

	"leasehold/store/internal/record"
)

// reads are the questions that a database answers without being written. They
// see what was committed before the call.
type reads struct {
	*record.Reads // those of people
	db            *sqlx.DB
	kind          func(error) error // gives an error its kind
}
