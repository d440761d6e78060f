package postgres_test

import (
	"testing"

	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
	"leasehold/store/storetest"
	"leasehold/store/storetest/history"
)

func TestHistories(t *testing.T) {
	build := func(t *testing.T) history.Harness {
		url := pgtest.Shared(t).Database(t)
		return history.Harness{
			Open: func() storetest.Store { return open(t, url, postgres.Options{}) },
			Fail: func(s storetest.Store, persisted bool) { postgres.FailNext(s.(*postgres.Store), persisted) },
			Cut: func() {
				pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			},
			Loose: true,
		}
	}
	history.Run(t, build)
	history.RunFaulty(t, build)
}
