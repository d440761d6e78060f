package pgtest

import (
	"fmt"
	"testing"

	"leasehold/store/storetest/trial"
)

// books are each grant and each release, written in its own transaction, and every
// grant of a lease whose owner was alive.
const books = `CREATE TABLE book (lease text, epoch bigint, freed boolean);
CREATE TABLE twice (lease text, epoch bigint);
CREATE FUNCTION keep_book() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.epoch <> OLD.epoch THEN
    INSERT INTO book VALUES (NEW.id, NEW.epoch, false);
    IF EXISTS (SELECT 1 FROM session WHERE session_id = OLD.owner) THEN INSERT INTO twice VALUES (NEW.id, NEW.epoch); END IF;
  ELSIF NEW.owner IS NULL AND OLD.owner IS NOT NULL THEN
    INSERT INTO book VALUES (NEW.id, NEW.epoch, true);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_book AFTER UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION keep_book();`

// stale counts the rows of a table that were committed after their lease had been
// granted to another, or freed.
const stale = `SELECT count(*) FROM %s w JOIN book b ON b.lease = w.lease_id
 WHERE (b.epoch > w.epoch OR b.freed AND b.epoch = w.epoch) AND pg_xact_commit_timestamp(b.xmin) < pg_xact_commit_timestamp(w.xmin)`

// KeepBooks has the database that url names, whose schema is there, write down every
// grant and every release from now on.
func KeepBooks(t testing.TB, url string) {
	t.Helper()
	Exec(t, url, books)
}

// ReadBooks compares what was written down with the server's own commit times.
func ReadBooks(t testing.TB, url string) (b trial.Books) {
	t.Helper()
	for sql, into := range map[string]*int64{
		"SELECT count(*) FROM event":                                                &b.Events,
		"SELECT count(*) FROM book WHERE NOT freed":                                 &b.Grants,
		"SELECT count(*) FROM twice":                                                &b.Twice,
		fmt.Sprintf(stale, "event"):                                                 &b.StaleEvents,
		fmt.Sprintf(stale, "delivery"):                                              &b.StaleMarks,
		"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()": &b.Deadlocks,
	} {
		Get(t, url, sql, into)
	}
	return b
}
