package postgres

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"leasehold/internal/fault"
	"leasehold/store/internal/record"
)

// oldest is the oldest server that has what the statements use, as
// server_version_num writes it.
const oldest = 140000

// Open opens the database that url names, postgres://USER:PASSWORD@HOST/DATABASE,
// and makes or upgrades its schema. The kinds of error:
//
//   - fault.Invalid: the URL, the database's name, the server's version or its
//     certificate; a database that is another one than this node had, unless
//     Options.NewStore is set; or it is the target of an unfinished copy, or its schema
//     is older and Options.Manual set. The text says which.
//   - fault.Denied: the role, its password, or what it may do.
//   - fault.Newer: a newer program changed the schema so that this one cannot use it.
//   - fault.ReadOnly, fault.Full: the server takes no writes.
//   - fault.NotFound, fault.Conflict: see Options.Existing.
//   - fault.Temporary: it does not answer, or not now.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RenewTimeout <= 0 {
		o.RenewTimeout = defaultRenewTimeout
	}
	t, err := parse(url, o)
	if err != nil {
		return nil, failed("open the store", err)
	}
	s := &Store{opt: o, log: o.Log, target: t, reads: &reads{kind: t.classify}}
	s.posts = make(chan struct{}, 1)
	s.renewals.turn = make(chan struct{}, 1)
	if s.pool, err = pgxpool.NewWithConfig(ctx, t.pool); err != nil {
		return nil, failed("open the store", t.classify(err))
	}
	s.db = sqlx.NewDb(stdlib.OpenDBFromPool(s.pool), "pgx")
	s.Reads = record.Over(s.db, s.kind, dialect)
	s.Writes = record.Through(s.Reads, s.change)
	if err := s.prepare(ctx); err != nil {
		_ = s.db.Close() // nothing was asked of it yet
		s.pool.Close()
		return nil, failed("open the store", t.classify(err))
	}
	s.start()
	return s, nil
}

// prepare looks who is there, and brings the schema up to date.
func (s *Store) prepare(ctx context.Context) error {
	var version int
	if err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return err
	}
	if version < oldest {
		return fault.Errorf(fault.Invalid, "the server of %s is PostgreSQL %d; upgrade it to %d or newer", s.target, version/10000, oldest/10000)
	}
	m, err := newMigrator(s.db.DB, s.pool, s.target.String(), s.log)
	if err != nil {
		return err
	}
	m.manual = s.opt.Manual
	if err := s.familiar(ctx, m); err != nil {
		return err
	}
	bring := m.run
	if s.opt.Existing {
		bring = m.check
	}
	if err := bring(ctx); err != nil {
		return err
	}
	if !s.opt.Copying {
		if err := s.unfinished(ctx); err != nil {
			return err
		}
	}
	if s.opt.Existing {
		return nil
	}
	return s.remember(ctx)
}

// start starts what runs until Close.
func (s *Store) start() {
	for n := range s.writers {
		s.writers[n] = newCommitter(s)
		go s.writers[n].run()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.background = cancel
	if s.target.pooled {
		s.watching.Go(func() { s.poll(ctx) })
	} else {
		s.watching.Go(func() { s.listen(ctx) })
		s.watching.Go(func() { s.tell(ctx) })
	}
}

// Close finishes the writes that wait and closes every connection. Calls made
// after it fail; closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	s.background()
	s.watching.Wait()
	for _, w := range s.writers {
		close(w.quit)
		<-w.done
	}
	s.busy.Wait()
	s.renewals.close()
	err := s.db.Close()
	s.pool.Close()
	if err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}
