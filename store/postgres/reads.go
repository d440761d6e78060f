package postgres

import "github.com/jmoiron/sqlx"

// reads are the questions that a database answers without being written. They
// see what was committed before the call.
type reads struct {
	db   *sqlx.DB
	kind func(error) error // gives an error its kind
}
