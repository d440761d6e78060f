package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// The suite replaces the database's clock by its own; this is about the one that
// ships.
func TestClock(t *testing.T) {
	t.Run("it goes on in a transaction that waits", func(t *testing.T) {
		url := pgtest.Shared(t).Database(t)
		open(t, url, postgres.Options{}) // makes it
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now := func() (ms int64) {
			if err := tx.QueryRow(t.Context(), "SELECT leasehold_now()").Scan(&ms); err != nil {
				t.Fatal(err)
			}
			return ms
		}
		began := now()
		if told := time.Since(time.UnixMilli(began)).Abs(); told > time.Hour {
			t.Errorf("got a time that is %v off, want milliseconds since 1970", told)
		}
		pgtest.Eventually(t, "a later time in the same transaction", func() bool { return now() > began })
	})
}
