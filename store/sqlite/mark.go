package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// A copy holds a table that no store at work has: it says where and when the copy
// was made. Whoever opens it first for writing, by whatever way it got to its
// place, finds the table and makes the copy a store of its own.

const (
	sqlMarkTable = `CREATE TABLE IF NOT EXISTS backup_mark (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  copied_at INTEGER NOT NULL,   -- 0 = a plain copy of the file, of nobody knows when
  through   INTEGER NOT NULL,   -- the newest event
  node      TEXT    NOT NULL,   -- whose store it was, in words
  host      TEXT    NOT NULL,
  file      TEXT    NOT NULL    -- that it was restored from; '' = not by the command
) STRICT`
	sqlSetMark = `INSERT INTO backup_mark(id, copied_at, through, node, host, file) VALUES (1, $1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET file = excluded.file`
	// The master key, locked by a passphrase, of a backup that travels with it. A restored
	// store has it beside itself and no more inside.
	sqlKeyTable   = `CREATE TABLE IF NOT EXISTS backup_key (id INTEGER PRIMARY KEY CHECK (id = 1), locked BLOB NOT NULL) STRICT`
	sqlNoKeyTable = `DROP TABLE IF EXISTS backup_key`
	sqlSetKey     = `INSERT INTO backup_key(id, locked) VALUES (1, $1)`
	sqlReadKey    = `SELECT locked FROM backup_key WHERE id = 1`
	sqlTableThere = `SELECT 1 FROM sqlite_schema WHERE name = $1`
	sqlMaster     = `SELECT coalesce((SELECT key_id FROM vault WHERE id = 1 AND (EXISTS (SELECT 1 FROM secret) OR EXISTS (SELECT 1 FROM signing_key))), '')`

	sqlMarked   = `SELECT 1 FROM sqlite_schema WHERE name = 'backup_mark'`
	sqlReadMark = `SELECT copied_at, through, node, host, file FROM backup_mark WHERE id = 1`
	sqlNewest   = `SELECT coalesce(max(seq), 0) FROM event`

	// The processes behind these are another box's, or dead: a copy is nobody's.
	sqlNoSessions = `DELETE FROM session`
	sqlNoOwners   = `UPDATE lease SET owner = NULL, fails = 0, not_before = 0 WHERE owner IS NOT NULL OR fails <> 0 OR not_before <> 0`

	// The other box may have sent since what waited when the copy was made: it is as if
	// its holder had died while he sent it.
	sqlMaybeSent = `UPDATE message INDEXED BY message_waiting SET state = 1 WHERE state < 2 AND state = 0`

	sqlOwnID  = `UPDATE schema_info SET store_id = lower(hex(randomblob(16))), host = '' WHERE id = 1`
	sqlUnmark = `DROP TABLE backup_mark`
	// An event's id is its seq: those that the other box gave after the copy was made
	// are not given again.
	sqlSkipSeqs = `UPDATE sqlite_sequence SET seq = seq + $1 WHERE name <> 'goose_db_version'`
	sqlFirstSeq = `INSERT INTO sqlite_sequence(name, seq) SELECT 'event', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'event')`
)

// seqGap is how many events the other box may have stored since: 2^30 are a
// thousand a second for twelve days, and a quarter of a million restores fit into
// the 2^48 that an id has room for.
const seqGap = 1 << 30

// mark is what a copy says of itself.
type mark struct {
	CopiedAt   int64
	Through    int64
	Node, Host string
	File       string
	Locked     []byte // the master key, locked by a passphrase; nil = it is not in it
	Master     string // the id of the key that what is sealed needs; filled in by write
}

// write marks the database in one transaction, and fills in Through. One that is
// marked already keeps what it says, apart from the file.
func (m *mark) write(ctx context.Context, db *sql.DB) error {
	// What is dropped is a key, and leaves nothing behind.
	if _, err := db.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, sqlNewest).Scan(&m.Through)
	for _, query := range []string{sqlNoSessions, sqlNoOwners, sqlMarkTable, sqlNoKeyTable} {
		if err == nil {
			_, err = tx.ExecContext(ctx, query)
		}
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, sqlSetMark, m.CopiedAt, m.Through, m.Node, m.Host, m.File)
	}
	if err == nil && m.Locked != nil {
		if _, err = tx.ExecContext(ctx, sqlKeyTable); err == nil {
			_, err = tx.ExecContext(ctx, sqlSetKey, m.Locked)
		}
	}
	if err == nil {
		err = m.readKey(ctx, tx)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// readKey reads which master key what is sealed needs, and the locked one that may be
// there. An older schema knows neither.
func (m *mark) readKey(ctx context.Context, db queryer) error {
	for table, read := range map[string]struct {
		query string
		into  any
	}{"vault": {sqlMaster, &m.Master}, "backup_key": {sqlReadKey, &m.Locked}} {
		var one int
		err := db.QueryRowContext(ctx, sqlTableThere, table).Scan(&one)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			err = db.QueryRowContext(ctx, read.query).Scan(read.into)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads the mark of a database; false: it has none.
func (m *mark) read(ctx context.Context, db queryer) (bool, error) {
	var one int
	if err := db.QueryRowContext(ctx, sqlMarked).Scan(&one); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return false, err
	}
	err := db.QueryRowContext(ctx, sqlReadMark).Scan(&m.CopiedAt, &m.Through, &m.Node, &m.Host, &m.File)
	return err == nil, err
}

// adopt makes a copy that is opened for the first time a store of its own: with an
// id of its own, event ids beyond those that the box which it came from may have given
// since, and doubt about the messages that wait. It warns, once: that box must not run any more.
func (s *Store) adopt(ctx context.Context, w *writer) error {
	var m mark
	marked, err := m.read(ctx, w.conn)
	if err != nil || !marked {
		return err
	}
	if err := w.begin(s.millis()); err != nil {
		return err
	}
	for _, step := range []struct {
		query string
		args  []any
	}{{sqlNoSessions, nil}, {sqlNoOwners, nil}, {sqlMaybeSent, nil}, {sqlOwnID, nil}, {sqlFirstSeq, nil}, {sqlSkipSeqs, []any{seqGap}}, {sqlUnmark, nil}} {
		if _, err := w.exec(step.query, step.args...); err != nil {
			w.rollback()
			return fmt.Errorf("adopt a copy of another store: %w", err)
		}
	}
	if err := w.commit(); err != nil {
		w.rollback()
		return fmt.Errorf("adopt a copy of another store: %w", err)
	}
	at := "unknown: a plain copy, without what stood only in its log"
	if m.CopiedAt != 0 {
		at = time.UnixMilli(m.CopiedAt).UTC().Format(time.RFC3339)
	}
	s.log.WarnContext(ctx, "store restored from a backup; the box it came from must be stopped",
		"from", m.File, "of", at, "node", m.Node, "host", m.Host, "through_seq", m.Through,
		"next_step", "if that is another box than this, stop it for good: two would hold each connection twice")
	return nil
}
