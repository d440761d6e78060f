package app_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leasehold/store/postgres/pgtest"
)

// TestPostgres drives the binary on a Postgres, whose URL is $STORE.
func TestPostgres(t *testing.T) {
	server := pgtest.Shared(t)
	p := params()
	p.Dir = filepath.Join("..", "testdata", "script", "postgres")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("STORE", server.Database(t))
		return setup(e)
	}
	testscript.Run(t, p)
}

// serving runs the tests and stops the server that they shared.
type serving struct{ m *testing.M }

func (s serving) Run() int { return pgtest.Main(s.m) }
