package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"leasehold/internal/fault"
	"leasehold/internal/identity"
)

// applicationID stands in the header of every database of ours: "LSHD".
const applicationID = 0x4C534844

var magic = []byte("SQLite format 3\x00")

// state is what a database file looks like before it is opened.
type state struct {
	empty   bool // no byte in it: a new one
	log     bool // it is in WAL mode
	unclean bool // its log was not folded in: the last process did not end well
	bare    bool // it does not say whose it is: a first start that was cut short
}

// place makes the file when there is none, readable by its owner alone: the log
// and its index inherit the mode.
func (s *Store) place() error {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.ReadOnly, "%w: check the owner of the file, and that the file system is mounted read-write", err)
	}
	if err := s.refuseLost("is not there"); err != nil {
		return err
	}
	f, err = os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster: the lock decides
	}
	if err != nil {
		return fault.Errorf(fault.ReadOnly, "make the database: %w; check the owner of its folder, and that the file system is mounted read-write", err)
	}
	return f.Close()
}

// refuseLost refuses to begin anew where the data folder remembers a store: an
// absent or empty file is a valid new database, and the sign of a lost one.
func (s *Store) refuseLost(how string) error {
	if s.opt.DataDir == "" || s.opt.NewStore {
		return nil
	}
	id, err := identity.Load(s.opt.DataDir)
	if err != nil {
		return err
	}
	if id.Store == "" {
		return nil
	}
	return fault.Errorf(fault.Gone,
		"the database %s %s, but this node had one (store %s): put it back or restore a backup; to begin with an empty one, run: leasehold run --new-store",
		s.path, how, id.Store)
}

// remember writes down which store belongs to the data folder.
func (s *Store) remember(w *writer) error {
	if err := w.get("SELECT store_id FROM schema_info WHERE id = 1", nil, &s.id); err != nil {
		return err
	}
	if s.opt.DataDir == "" {
		return nil
	}
	id, err := identity.Load(s.opt.DataDir)
	if err != nil {
		return err
	}
	return id.SetStore(s.id, "")
}

// inspect reads the header, without SQLite, which would begin to use the file.
func (s *Store) inspect() (state, error) {
	st, err := readHeader(s.path)
	if err == nil && st.empty {
		return st, s.refuseLost("is empty")
	}
	if err != nil || st.empty {
		return st, err
	}
	if wal, err := os.Stat(s.path + "-wal"); err == nil && wal.Size() > 0 {
		st.unclean = true
	}
	return st, nil
}

// readHeader tells what the file at path is by its first bytes.
func readHeader(path string) (st state, err error) {
	f, err := os.Open(path)
	if err != nil {
		return st, fault.Wrap(fault.ReadOnly, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var header [100]byte
	switch n, err := io.ReadFull(f, header[:]); {
	case n == 0 && errors.Is(err, io.EOF):
		st.empty = true
		return st, nil
	case err != nil || !bytes.HasPrefix(header[:], magic):
		return st, corruptError(path, errors.New("it does not begin as a database does"))
	}
	switch binary.BigEndian.Uint32(header[68:]) {
	case applicationID:
	case 0: // until the first migration is committed
		st.bare = true
	default:
		return st, foreignError(path)
	}
	st.log = header[18] == 2
	return st, nil
}

func foreignError(path string) error {
	return fault.Errorf(fault.Invalid, "%s is a database of another program: name another file in store.url", path)
}

// refuseTables refuses a database that does not say whose it is and has tables:
// ours says so in the commit that makes its first one. That commit may still be
// in the log alone, where only SQLite reads it.
func refuseTables(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dsn(path, dsnLook))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var owner, tables int
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&owner); err != nil {
		return err
	}
	// The migrations' own table is made before the first of them.
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'`).Scan(&tables)
	if err != nil {
		return err
	}
	if owner != applicationID && tables > 0 {
		return foreignError(path)
	}
	return nil
}

// makeWAL gives a new file, or a restored copy, its persistent settings.
func makeWAL(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, dsnCreate))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(db.PingContext(ctx), db.Close())
}

// checkBelow is the size up to which a database is checked before it is used
// after an unclean stop: about a quarter of a second. A larger one is checked by
// the next upkeep, while it works.
const checkBelow = 256 << 20

// examine checks a database whose last process did not end well: in a garbled
// file, writes beside the damage go on succeeding.
func (s *Store) examine(ctx context.Context, db *sql.DB, st state) error {
	left, err := sessionLeft(ctx, db)
	if err != nil || (!st.unclean && !left) {
		return err
	}
	if sizeOf(s.path) > checkBelow {
		s.checkDue.Store(true)
		return nil
	}
	return quickCheck(ctx, s.path, db)
}

// sessionLeft reports whether a session was not ended.
func sessionLeft(ctx context.Context, db *sql.DB) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'session'`).Scan(&n)
	if err != nil || n == 0 {
		return false, err
	}
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM session`).Scan(&n)
	return n > 0, err
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// quickCheck reads the whole database and returns fault.Corrupt with the first
// damage that it finds.
func quickCheck(ctx context.Context, path string, db queryer) error {
	var words string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&words); err != nil {
		return classify(path, err)
	}
	if words != "ok" {
		return corruptError(path, errors.New(words))
	}
	return nil
}
