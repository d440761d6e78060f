package sqlite_test

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"leasehold/store/sqlite"
	"leasehold/store/storetest"
	"leasehold/store/storetest/trial"
)

// books are what the trial is judged by: one table that every grant, release, event
// and mark is written into within its own transaction. There is one writer at a
// time, so the order of its rows is that of the commits.
const books = `CREATE TABLE book (n INTEGER PRIMARY KEY, what TEXT, lease TEXT, epoch INTEGER) STRICT;
CREATE INDEX book_lease ON book (lease, what, epoch);
CREATE TRIGGER keep_grants AFTER UPDATE ON lease WHEN NEW.epoch <> OLD.epoch BEGIN
  INSERT INTO book(what, lease, epoch) VALUES ('grant', NEW.id, NEW.epoch);
  INSERT INTO book(what, lease, epoch) SELECT 'twice', NEW.id, NEW.epoch WHERE EXISTS (SELECT 1 FROM session WHERE session_id = OLD.owner);
END;
CREATE TRIGGER keep_releases AFTER UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND NEW.owner IS NULL AND OLD.owner IS NOT NULL BEGIN
  INSERT INTO book(what, lease, epoch) VALUES ('free', NEW.id, NEW.epoch);
END;
CREATE TRIGGER keep_events AFTER INSERT ON event BEGIN INSERT INTO book(what, lease, epoch) VALUES ('event', NEW.lease_id, NEW.epoch); END;
CREATE TRIGGER keep_marks AFTER UPDATE ON delivery BEGIN INSERT INTO book(what, lease, epoch) VALUES ('mark', NEW.lease_id, NEW.epoch); END;`

const (
	// stale counts what was written after its lease had been granted to another, or
	// freed.
	stale = `SELECT count(*) FROM book w WHERE w.what = $1 AND EXISTS (SELECT 1 FROM book b WHERE b.lease = w.lease AND b.n < w.n
 AND (b.what = 'grant' AND b.epoch > w.epoch OR b.what = 'free' AND b.epoch = w.epoch))`
	booked = `SELECT count(*) FROM book WHERE what = $1`
)

func TestTrial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leasehold.db")
	trial.Run(t, trial.Harness{
		Nodes: 3,
		Open:  func() storetest.Store { return shared(t, path) },
		Keep: func() {
			beside(t, path, func(db *sql.DB) error {
				_, err := db.ExecContext(t.Context(), books)
				return err
			})
		},
		Read: func() (b trial.Books) {
			beside(t, path, func(db *sql.DB) error {
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM event").Scan(&b.Events); err != nil {
					return err
				}
				for _, q := range []struct {
					query, what string
					into        *int64
				}{{booked, "grant", &b.Grants}, {booked, "twice", &b.Twice}, {stale, "event", &b.StaleEvents}, {stale, "mark", &b.StaleMarks}} {
					if err := db.QueryRowContext(t.Context(), q.query, q.what).Scan(q.into); err != nil {
						return err
					}
				}
				return nil
			})
			return b
		},
	})
}

// shared opens the database at path as one node of several, until the test's end.
func shared(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Shared(t.Context(), path, sqlite.Options{ReserveBytes: -1})
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

// beside opens the database at path for a moment, as another program would.
func beside(t *testing.T, path string, f func(db *sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_busy_timeout=60000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // what it did is committed
	if err := f(db); err != nil {
		t.Fatal(err)
	}
}
