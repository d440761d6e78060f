package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/internal/loop"
)

const (
	// notifyChannel carries one constant word per kind of change: who hears it looks.
	notifyChannel = "leasehold"
	sqlNotify     = `SELECT pg_notify('` + notifyChannel + `', $1)`

	// pingEvery is how long a silent connection is believed to be there: what was
	// changed meanwhile is found by the nodes' own polls, this bounds for how long that
	// is all there is.
	pingEvery  = 10 * time.Second
	pingWithin = 3 * time.Second
	// listenAgain and listenAgainMax are the waits before a lost connection is dialled
	// again.
	listenAgain, listenAgainMax = 200 * time.Millisecond, 5 * time.Second

	// pollEvery is how often the digest of the list is compared where nobody is told:
	// a change is acted on within a second of its commit.
	pollEvery = time.Second
	// What waits again and what is sealed are no part of the list, and are acted on like
	// it.
	sqlPoll = sqlListVersion + `
# (SELECT count(*) FROM delivery WHERE state = 0 AND replay) # (coalesce((SELECT version FROM vault), 0) << 32), (SELECT coalesce(max(seq), 0) FROM message)`

	// wordMessage is said when a message was posted, which concerns those alone who send.
	wordMessage = "message"
)

// listen wakes whoever watches when the database tells of a change, until ctx ends.
// It says LISTEN before it wakes for what may have been missed.
func (s *Store) listen(ctx context.Context) {
	wait := listenAgain
	for ctx.Err() == nil {
		began := time.Now()
		err := s.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		s.log.DebugContext(ctx, "not told of changes", "error", s.target.classify(err))
		if time.Since(began) > pingEvery {
			wait = listenAgain
		}
		if loop.Sleep(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, listenAgainMax)
	}
}

// hear listens on one connection for as long as it is there.
func (s *Store) hear(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.target.single(statementTimeout))
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		_ = conn.Close(bye)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+notifyChannel); err != nil {
		return err
	}
	s.changes.Wake()
	s.mail.Wake()
	for {
		if err := s.hearOne(ctx, conn); err != nil {
			return err
		}
	}
}

// hearOne waits for a notification, or finds out that the connection is still there.
func (s *Store) hearOne(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, pingEvery)
	defer cancel()
	told, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil && told.Payload == wordMessage:
		s.mail.Wake()
		return nil
	case err == nil:
		s.changes.Wake()
		return nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	ping, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	return conn.Ping(ping)
}

// tellEvery is how often others are told of messages, at most: each telling costs
// every node that sends one look at an index that holds only what waits, and nobody
// waits noticeably longer.
const tellEvery = 20 * time.Millisecond

// tell tells the other nodes that messages were posted here. One of them may hold the
// lease. What is not told is found by its poll.
func (s *Store) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.posts:
		}
		telling, cancel := context.WithTimeout(ctx, pingWithin)
		_, err := s.pool.Exec(telling, sqlNotify, wordMessage)
		cancel()
		if err != nil {
			s.log.DebugContext(ctx, "other nodes not told of messages", "error", s.kind(err))
		}
		if loop.Sleep(ctx, tellEvery) != nil {
			return
		}
	}
}

// poll does what listen does behind a pooler, which passes no notifications on.
func (s *Store) poll(ctx context.Context) {
	var known, newest int64
	for loop.Sleep(ctx, pollEvery) == nil {
		looking, cancel := context.WithTimeout(ctx, pingWithin)
		var version, posted int64
		err := s.pool.QueryRow(looking, sqlPoll).Scan(&version, &posted)
		cancel()
		if err == nil && version != known {
			known = version
			s.changes.Wake()
		}
		if err == nil && posted > newest {
			newest = posted
			s.mail.Wake()
		}
	}
}
