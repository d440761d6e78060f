package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
	"leasehold/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// The suite moves the database's clock. It is what leasehold_now answers with, so
// that one is replaced, and no statement is another than in earnest.
const ownClock = `CREATE TABLE test_clock (ms bigint NOT NULL);
INSERT INTO test_clock VALUES (0);
CREATE OR REPLACE FUNCTION leasehold_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT ms FROM test_clock';`

// emptied leaves the schema and nothing in it: a new database for every promise
// would take most of the suite's time.
const emptied = `TRUNCATE installation, target, session, node_drain, lease, link_status, cursor, event, delivery, message, connect_budget, task_run, probe,
  vault, secret, signing_key, follow_up, follow_up_key, token, audit RESTART IDENTITY`

func TestStore(t *testing.T) {
	t.Run("with prepared statements", func(t *testing.T) { suite(t, postgres.Options{}) })
	t.Run("as behind a pooler", func(t *testing.T) { suite(t, postgres.Options{PollOnly: true}) })
}

func suite(t *testing.T, o postgres.Options) {
	url := pgtest.Shared(t).Database(t)
	if err := open(t, url, o).Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	exec := func(t *testing.T, sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, ownClock)
	storetest.Run(t, func(t *testing.T, c *storetest.Clock) storetest.Harness {
		exec(t, emptied)
		c.Set = func(now time.Time) { exec(t, "UPDATE test_clock SET ms = $1", now.UnixMilli()) }
		c.Step(0)
		return storetest.Harness{
			Open: func() storetest.Store { return open(t, url, o) },
			Fail: func(s storetest.Store, persisted bool) { postgres.FailNext(s.(*postgres.Store), persisted) },
		}
	})
}

// open opens the database until the test's end.
func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
