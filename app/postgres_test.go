package app_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leasehold/store/postgres/pgtest"
)

// TestPostgres drives the binary on a Postgres, whose URL is $STORE; $EMPTY is another
// database that nobody has used.
func TestPostgres(t *testing.T) {
	p := postgresParams(t)
	p.Dir = filepath.Join("..", "testdata", "script", "postgres")
	testscript.Run(t, p)
}

// postgresParams are those of a script with a database of its own.
func postgresParams(t *testing.T) testscript.Params {
	t.Helper()
	server := pgtest.Shared(t)
	p := params()
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("STORE", server.Database(t))
		e.Setenv("EMPTY", server.Database(t))
		return setup(e)
	}
	return p
}

// serving runs the tests and stops the server that they shared.
type serving struct{ m *testing.M }

func (s serving) Run() int { return pgtest.Main(s.m) }
