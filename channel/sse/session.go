package sse

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"leasehold/channel"
	"leasehold/internal/budget"
)

const (
	// depth is how many events may wait for the disk: one full commit, while the one
	// before it is written.
	depth = 256
	// pendingMax is how many bytes of events may wait for the disk.
	pendingMax = 4 << 20
)

// session is a stream that is open. At rest it has two goroutines: run, which keeps
// the time, and listen; the inbox has one while it commits.
type session struct {
	plan    *plan
	link    *channel.Link
	conn    *conn
	parser  *parser // listen's; after it has returned run's
	inbox   *channel.Inbox
	start   time.Time
	nonce   string         // makes ids where the platform has none
	counter int64          // of made ids; listen's
	pending *budget.Budget // of bytes that wait for the disk

	last    atomic.Int64 // nanoseconds from start to the last sign of life
	waiting atomic.Bool  // the reader waits for the disk and hears nothing
}

func newSession(p *plan, link *channel.Link, c *conn) *session {
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	s := &session{plan: p, link: link, conn: c, start: time.Now(), nonce: hex.EncodeToString(nonce[:]), pending: budget.New(pendingMax)}
	s.parser = newParser(s, p.maxSize)
	return s
}

// Read is the parser's: every byte is a sign of life, those of a comment and of half
// an event included.
func (s *session) Read(b []byte) (int, error) {
	n, err := s.conn.body.Read(b)
	if n > 0 {
		s.last.Store(int64(time.Since(s.start)))
		s.link.Alive()
	}
	return n, err //nolint:wrapcheck // a Reader's
}

// run hears until the stream or ctx ends and returns why, nil when ctx did. There is
// no goodbye but the end of the request; what was heard is committed.
func (s *session) run(ctx context.Context) error {
	s.inbox = s.link.Inbox(depth)
	s.link.Ready(channel.Info{}) // the platform said so: 200, and a stream's content type
	ended := make(chan struct{})
	var heard error
	s.link.Go(func() {
		defer close(ended) // after a panic, too, which ends the term
		heard = s.listen()
	})
	silent := s.watch(ctx, ended)
	s.conn.hang()
	stored := s.inbox.Close() // which ends a push that waits
	<-ended
	s.conn.close()

	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // however the connection ended, ctx did first
	case silent != nil:
		return silent
	case stored != nil:
		return fmt.Errorf("store what was heard: %w", stored)
	default:
		return s.plan.ended(heard, s.parser.retry, time.Since(s.start))
	}
}

// watch keeps the time until ctx, the reader or the inbox ends, or until silence has
// lasted too long, which it returns.
func (s *session) watch(ctx context.Context, ended <-chan struct{}) error {
	timer := time.NewTimer(s.plan.deadAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case <-s.inbox.Done():
			return nil
		case <-timer.C:
		}
		wait := time.Duration(s.last.Load()) + s.plan.deadAfter - time.Since(s.start)
		switch {
		case s.waiting.Load():
			wait = s.plan.deadAfter // nobody listens: silence means nothing
		case wait <= 0:
			return channel.Failed("silent", fmt.Errorf("nothing was heard for %s, not even a comment; if the server may be so quiet, raise dead_after", s.plan.deadAfter))
		}
		timer.Reset(wait)
	}
}
