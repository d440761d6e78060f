package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"leasehold/internal/fault"
	"leasehold/store/internal/record"
)

// Open opens the database at path for this process alone, making it first when
// there is none, and brings its schema up to date. Whatever is wrong, nothing
// that exists is overwritten. The kinds of error:
//
//   - fault.Busy with a *LockedError: another process has it; see WaitForLock.
//   - fault.Newer: a newer program wrote it.
//   - fault.Corrupt: it is damaged, or not a database of ours.
//   - fault.Gone: DataDir remembers a store whose file is not there, or is empty.
//   - fault.ReadOnly, fault.Full: the file system does not take writes.
//   - fault.Invalid: the place is unsafe, or the database the target of an unfinished
//     copy, or its schema older and o.Manual set; the text says which.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	return open(ctx, path, o, true)
}

// Shared opens a database without the lock, so that several stores may use it:
// sessions have expiries then, as they do on a server, and Sole is false. It is
// for tests of what several nodes do.
func Shared(ctx context.Context, path string, o Options) (*Store, error) {
	return open(ctx, path, o, false)
}

// openMu keeps tests' concurrent first opens from migrating at once; a sole
// owner's lock does it for processes.
var openMu sync.Mutex

func open(ctx context.Context, path string, o Options, sole bool) (_ *Store, err error) {
	if err := setUpDriver(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = defaultReserve
	}
	if path, err = resolve(path, o.ForceNetworkFS); err != nil {
		return nil, failed("open the store", err)
	}
	openMu.Lock()
	defer openMu.Unlock()
	s := &Store{opt: o, log: o.Log, reads: &reads{path: path}}
	s.kind = s.judge
	s.version.Store(1)
	s.settled.Store(-1)
	s.nextCheck.Store(o.Now().Add(checkEvery).UnixMilli())
	if err := s.start(ctx, sole); err != nil {
		return nil, errors.Join(failed("open the store", s.advise(classify(path, err))), s.abandon())
	}
	return s, nil
}

// start does what opening takes, in order; abandon undoes what it reached.
func (s *Store) start(ctx context.Context, sole bool) error {
	if err := s.place(); err != nil {
		return err
	}
	if sole {
		lock, err := lockDatabase(s.path, s.opt.Name, s.opt.Now())
		if err != nil {
			return err
		}
		s.lock = lock
		removeParts(s.path) // of restores that were killed: each holds the lock while it lives
	}
	state, err := s.inspect()
	if err != nil {
		return err
	}
	if state.bare {
		if err := refuseTables(ctx, s.path); err != nil {
			return err
		}
	}
	if state.empty || !state.log {
		if err := makeWAL(ctx, s.path); err != nil {
			return err
		}
	}
	if err := s.spareLog(ctx); err != nil {
		return err
	}
	if sole {
		if err := s.examine(ctx, s.last, state); err != nil {
			return err
		}
	}
	pool, err := sql.Open("sqlite", dsn(s.path, dsnWrite))
	if err != nil {
		return err
	}
	pool.SetMaxOpenConns(1)
	w := &writer{pool: pool}
	s.c = newCommitter(s, w)
	m, err := newMigrator(pool, s.path, migrations())
	if err != nil {
		return err
	}
	m.now, m.log, m.manual = s.opt.Now(), s.log, s.opt.Manual
	if err := m.run(ctx); err != nil {
		return err
	}
	if !s.opt.Copying {
		if err := unfinished(ctx, pool, s.path); err != nil {
			return err
		}
	}
	s.forgetStatistics(ctx)
	if err := w.connect(); err != nil {
		return err
	}
	if sole {
		if err := s.adopt(ctx, w); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	s.Writes = record.Through(s.Reads, s.change)
	if s.keep, err = keepOpen(ctx, s.db); err != nil {
		return err
	}
	if err := s.remember(w); err != nil {
		return err
	}
	if s.c.seen, err = w.dataVersion(); err != nil {
		return err
	}
	f, err := lookAtFiles(s.path)
	if err != nil {
		return err
	}
	s.files.Store(f)
	if err := s.last.Close(); err != nil {
		return err
	}
	s.last = nil
	s.ensureReserve()
	go s.c.run()
	return nil
}

// spareLog opens a connection that can only read, to be closed last. Whichever
// closes last folds the log into the database and deletes it; what cannot be
// opened, a damaged or a newer database above all, is to stay as it is.
func (s *Store) spareLog(ctx context.Context) (err error) {
	if s.last, err = sql.Open("sqlite", dsn(s.path, dsnLook)); err != nil {
		return err
	}
	s.last.SetMaxOpenConns(1)
	var n int // it uses the log once it has asked something
	return s.last.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n)
}

func openReads(path string) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", dsn(path, dsnRead))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readers + 1) // with the one that is kept
	db.SetMaxIdleConns(readers + 1)
	return db, nil
}

// keepOpen pins a connection that nobody uses. Closing a database's last one
// would delete the log, and the pools drop a connection now and then: the writer
// after a disk error, a reader when its caller gives up.
func keepOpen(ctx context.Context, db *sqlx.DB) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var n int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Close finishes the writes that wait, folds the log into the database, and
// gives the lock up; a damaged database is left as it is. Calls made after it
// fail; closing again does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.c.quit)
	<-s.c.done
	if fault.Is(s.broken(), fault.Corrupt) {
		_ = s.spareLog(background) // it may read damage: it has used the log all the same
	}
	errs := []error{s.keep.Close(), s.db.Close()}
	if s.broken() == nil && s.lock != nil && s.c.w.conn != nil {
		// Only here: it would block the writer for as long as anybody reads.
		_, err := s.c.w.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		if err = classify(s.path, err); fault.Is(err, fault.Full) {
			s.log.Warn("log kept beside the database", "error", err) // the next start reads it
			err = nil
		}
		errs = append(errs, err)
	}
	errs = append(errs, s.abandon())
	return failed("close the store", errors.Join(errs...))
}

// abandon closes what is open, in the reverse order of start.
func (s *Store) abandon() error {
	var errs []error
	if s.keep != nil && !s.closed.Load() {
		errs = append(errs, s.keep.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.c != nil {
		errs = append(errs, s.c.w.close(false), s.c.w.pool.Close())
	}
	if s.last != nil {
		errs = append(errs, s.last.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}
