package postgres_test

import (
	"testing"

	"leasehold/admin"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
	"leasehold/store/storetest"
	"leasehold/store/storetest/trial"
)

func TestTrial(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	trial.Run(t, trial.Harness{
		Nodes: 4,
		Open:  func() storetest.Store { return open(t, url, postgres.Options{}) },
		Keep:  func() { pgtest.KeepBooks(t, url) },
		Read: func() trial.Books {
			// A backend tells what it counted when it ends.
			pgtest.Eventually(t, "the end of the stores' connections", func() bool {
				var others int
				pgtest.Get(t, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()", &others)
				return others == 0
			})
			return pgtest.ReadBooks(t, url)
		},
	})
}

// put makes the installation "i".
func put(t testing.TB, s *postgres.Store) {
	t.Helper()
	if _, err := s.PutInstallation(t.Context(), admin.Installation{ID: "i", Type: "fake", Enabled: true, Source: "api"}, 0); err != nil {
		t.Fatal(err)
	}
}
