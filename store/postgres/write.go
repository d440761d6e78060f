package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

// errClosed is what a call gets once the store is closing.
var errClosed = fault.Errorf(fault.Temporary, "the store is closed")

// write runs f on a goroutine of the store's own and waits for it. A caller's
// context ends the caller's wait, never a statement: to cancel one costs its
// connection, and it may take effect all the same. f runs under writeTimeout and
// is run again after a failure of which the database says that nothing happened.
func write[T any](ctx context.Context, s *Store, f func(ctx context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan outcome, 1)
	ok := s.during(func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		var o outcome
		o.err = s.repeat(own, func() (err error) {
			o.value, err = f(own)
			return err
		})
		done <- o
	})
	if !ok {
		return none, errClosed
	}
	select {
	case o := <-done:
		if o.err != nil {
			return none, o.err
		}
		return o.value, nil
	case <-ctx.Done():
		return none, fmt.Errorf("the outcome is unknown: %w", ctx.Err())
	}
}

// during runs f on a goroutine that Close waits for; false: the store is closed.
func (s *Store) during(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.busy.Go(f)
	return true
}

// tries is how often a write is run that others keep from being serialised.
const tries = 4

// repeat runs f until it succeeds or fails for good, and gives the error its kind.
func (s *Store) repeat(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil {
			return nil
		}
		s.dropSuspects(err)
		if n == tries || !again(err) || loop.Sleep(ctx, rand.N(20*time.Millisecond)<<n) != nil {
			return s.kind(err)
		}
	}
}

// dropSuspects closes the connections that nobody uses after one of them failed as
// a lost network or a restarted server lets them fail: so would the others, each
// for as long as its caller waits.
func (s *Store) dropSuspects(err error) {
	var server *pgconn.PgError
	if errors.As(err, &server) && !shuttingDown(server.Code) {
		return
	}
	if lost(err) {
		s.pool.Reset()
	}
}

// committing runs f, which commits.
func (s *Store) committing(f func() error) error {
	hook := s.hook.Load()
	if hook == nil {
		return f()
	}
	if err := (*hook)(false); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return (*hook)(true)
}

// step is one statement of a transaction, and what reads its answer.
type step struct {
	sql  string
	args []any
	scan func(pgx.Rows) error // once per row; nil = the answer does not matter
	n    *int64               // rows affected; nil = does not matter
}

// sender is a connection, or a pool of them.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

const (
	sqlBegin = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	// Within a transaction of its own: a pooler keeps no setting beyond it.
	sqlSettings = `SELECT set_config('synchronous_commit', 'on', true), set_config('statement_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true)`
)

// atomically sends the steps together, as one transaction that is committed when it
// returns nil: they cost one round trip. Each step sees what was committed before
// it began.
func (s *Store) atomically(ctx context.Context, to sender, steps ...step) error {
	return s.committing(func() error {
		if s.target.pooled {
			steps = append(append(s.opening(), steps...), step{sql: "COMMIT"})
		}
		return send(ctx, to, steps...)
	})
}

// opening begins a transaction that lasts beyond one round trip.
func (s *Store) opening() []step {
	if !s.target.pooled {
		return []step{{sql: sqlBegin}}
	}
	forced := settings(statementTimeout)
	return []step{{sql: sqlBegin}, {sql: sqlSettings, args: []any{forced[1][1], forced[2][1]}}}
}

// send sends the steps together. Without a BEGIN among them they are one
// transaction; after an error none of the rest has run.
func send(ctx context.Context, to sender, steps ...step) (err error) {
	b := &pgx.Batch{}
	for _, st := range steps {
		b.Queue(st.sql, st.args...)
	}
	answers := to.SendBatch(ctx, b)
	defer func() {
		if closing := answers.Close(); err == nil {
			err = closing
		}
	}()
	for _, st := range steps {
		if err := st.read(answers); err != nil {
			return err
		}
	}
	return nil
}

func (st step) read(answers pgx.BatchResults) error {
	if st.scan == nil {
		tag, err := answers.Exec()
		if err == nil && st.n != nil {
			*st.n = tag.RowsAffected()
		}
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := st.scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
