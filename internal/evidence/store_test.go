//go:build unix

package evidence_test

import (
	"database/sql"
	"errors"
	"testing"

	"leasehold/delivery"
)

// row is an event with its delivery, as the tables have it.
type row struct {
	seq      int64
	webhook  string
	state    delivery.State
	attempts int
}

// rows reads the tables of a database beside whoever has it open, without our own
// code. An event that is there twice fails the test.
func rows(t testing.TB, path string) map[string]row {
	t.Helper()
	return rowsAt(t, "sqlite", fileURL(path))
}

func fileURL(path string) string { return "file:" + path + "?_query_only=1&_busy_timeout=5000" }

// rowsAt is rows of a database by its driver and URL.
func rowsAt(t testing.TB, driver, url string) map[string]row {
	t.Helper()
	db, err := sql.Open(driver, url)
	must(t, err)
	all, err := read(t, db)
	must(t, errors.Join(err, db.Close()))
	return all
}

func read(t testing.TB, db *sql.DB) (_ map[string]row, err error) {
	got, err := db.QueryContext(t.Context(),
		`SELECT e.event_id, e.seq, d.webhook_id, d.state, d.attempts FROM event e LEFT JOIN delivery d ON d.event_seq = e.seq ORDER BY e.seq`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, got.Close()) }()
	all := map[string]row{}
	for got.Next() {
		var id string
		var webhook sql.NullString
		var state, attempts sql.NullInt64
		var r row
		if err := got.Scan(&id, &r.seq, &webhook, &state, &attempts); err != nil {
			return nil, err
		}
		if !webhook.Valid {
			t.Errorf("%s is stored without its delivery, want both or none", id)
		}
		r.webhook, r.state, r.attempts = webhook.String, delivery.State(state.Int64), int(attempts.Int64)
		if was, twice := all[id]; twice {
			t.Errorf("%s is stored as %d and as %d, want it once", id, was.seq, r.seq)
		}
		all[id] = r
	}
	return all, got.Err()
}
