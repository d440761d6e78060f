package websocket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
	"leasehold/internal/budget"
	"leasehold/internal/jsonframe"
)

const (
	// writeTimeout bounds every frame that we send.
	writeTimeout = 10 * time.Second
	// polite bounds the goodbye, commits included: well within channel.Goodbye, and
	// short enough that a mute platform does not hold up a restart.
	polite = 700 * time.Millisecond
	// lastWords is how long a broken write waits for the reader, which often hears
	// the platform's reason right behind it.
	lastWords = time.Second

	// depth is how many events may wait for the disk: one full commit, while the one
	// before it is written.
	depth = 256
	// pendingMax is how many bytes of events may wait for the disk.
	pendingMax = 4 << 20
)

// session is a connection that is up. At rest it has two goroutines: run, which
// keeps the time and sends what is sent first, and listen, which never writes. The
// inbox has one while it commits and then acknowledges, a ping while it is on its
// way. A node may have thousands: whatever lasts here is paid for that often.
type session struct {
	plan    *plan
	link    *channel.Link
	conn    *conn
	inbox   *channel.Inbox
	start   time.Time
	nonce   string         // makes ids where the platform has none
	pending *budget.Budget // of bytes that wait for the disk
	lend    func(*session) // to those who speak; nil takes it back
	out     outbox
	proof   proof

	ended  chan struct{}  // the reader has returned
	signal chan struct{}  // run must look again; holds one
	beats  sync.WaitGroup // pings on their way

	last    atomic.Int64 // nanoseconds from start to the last sign of life
	readyAt atomic.Int64 // nanoseconds from start; 0 = not ready
	counter atomic.Int64 // of made ids
	waiting atomic.Bool  // the reader waits for the disk and hears nothing
	leaving atomic.Bool  // what comes is not for us any more
	fenced  atomic.Bool  // nothing may be written any more
	mayAsk  atomic.Bool  // subscribe_when has held

	failOnce sync.Once
	failure  error // why we ended the connection; read once everything has ended
}

func newSession(p *plan, link *channel.Link, c *conn, lend func(*session)) *session {
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	s := &session{
		plan: p, link: link, conn: c, start: time.Now(), nonce: hex.EncodeToString(nonce[:]), pending: budget.New(pendingMax),
		lend: lend, ended: make(chan struct{}), signal: make(chan struct{}, 1),
	}
	c.wire.alive, c.frame = s.alive, s.readyByDefault
	return s
}

// run drives the session to its end and returns why it ended, nil when ctx did.
func (s *session) run(ctx context.Context) error {
	s.inbox = s.link.Inbox(depth)
	var heard error
	s.link.Go(func() {
		defer close(s.ended) // after a panic, too, which ends the term
		heard = s.listen()
	})
	broken := s.drive(ctx)
	s.lend(nil)
	switch {
	case ctx.Err() != nil:
		s.goodbye(context.Cause(ctx))
	case broken != nil:
		s.awaitReason()
	}
	s.conn.wire.hang()
	_ = s.conn.CloseNow()
	<-s.ended
	s.out.close()
	stored := s.inbox.Close()
	s.beats.Wait()

	var said websocket.CloseError
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // however the connection ended, ctx did first
	case s.failure != nil:
		return s.failure
	case stored != nil:
		return fmt.Errorf("store what was heard: %w", stored)
	case broken != nil && !errors.As(heard, &said):
		return s.plan.broken(broken)
	default:
		return s.plan.closed(heard, s.readyFor())
	}
}

// drive says what is said first and keeps the time until ctx, the reader or the
// inbox ends, or a write fails, which it returns.
func (s *session) drive(ctx context.Context) error {
	if err := s.send(ctx, s.plan.login); err != nil {
		return err
	}
	asked := false
	beat := newHeartbeat(s)
	defer beat.stop()
	for {
		if !asked && (s.plan.subscribeWhen == nil || s.mayAsk.Load()) {
			asked = true
			if err := s.ask(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ended:
			return nil
		case <-s.inbox.Done():
			return nil
		case <-s.signal:
		case <-beat.due():
			beat.tick(ctx)
		}
	}
}

// ask sends what asks for events.
func (s *session) ask(ctx context.Context) error {
	for _, t := range append([]*jsonframe.Template{s.plan.resume}, s.plan.subscribe...) {
		if err := s.send(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// send writes a frame; a nil template, or one whose values are not known, writes
// nothing.
func (s *session) send(ctx context.Context, t *jsonframe.Template) error {
	if t == nil {
		return nil
	}
	b, ok := t.Render(jsonframe.Values{Secrets: s.plan.secrets, Cursor: s.plan.resumeFrom(s.link.Cursor())})
	if !ok {
		return nil
	}
	return s.write(ctx, b)
}

// write sends a text message. One that does not end in time ends the connection:
// after half a frame nothing else can be said.
func (s *session) write(ctx context.Context, b []byte) error {
	if s.fenced.Load() {
		return channel.ErrFenced
	}
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := s.conn.Write(limited, websocket.MessageText, b)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		s.fail(channel.Failed("write_timeout", fmt.Errorf("the server takes nothing: a write did not end within %s", writeTimeout)))
	}
	return err
}

// fail ends the connection for a reason of our own.
func (s *session) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		s.conn.wire.hang()
	})
}

// awaitReason gives the reader a moment to hear why a write failed.
func (s *session) awaitReason() {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
	}
}

// goodbye commits and acknowledges what was heard, waits for what becomes of the
// messages on their way, and says that we go; fenced, it does none of it.
func (s *session) goodbye(cause error) {
	s.leaving.Store(true)
	if errors.Is(cause, channel.ErrFenced) {
		s.fenced.Store(true)
		return
	}
	timer := time.AfterFunc(polite, s.conn.wire.hang)
	defer timer.Stop()
	_ = s.inbox.Close()
	s.out.close()
	code := websocket.StatusGoingAway
	if errors.Is(cause, channel.ErrRemoved) {
		code = websocket.StatusNormalClosure
	}
	_ = s.conn.Close(code, "")
}

// alive is a sign of life: anything that came.
func (s *session) alive() {
	s.last.Store(int64(time.Since(s.start)))
	s.link.Alive()
}

// ready says, once, that the platform said so.
func (s *session) ready() {
	if s.readyAt.CompareAndSwap(0, max(1, int64(time.Since(s.start)))) {
		s.lend(s)
		s.link.Ready(channel.Info{})
		s.wake()
	}
}

// readyByDefault takes any frame of the platform for its word, where ready_when
// does not say which.
func (s *session) readyByDefault() {
	if s.plan.readyWhen == nil {
		s.ready()
	}
}

// readyFor is how long the platform has said so; 0 = it never did.
func (s *session) readyFor() time.Duration {
	at := s.readyAt.Load()
	if at == 0 {
		return 0
	}
	return time.Since(s.start) - time.Duration(at)
}

func (s *session) wake() {
	select {
	case s.signal <- struct{}{}:
	default: // run will look in any case
	}
}

// makeID is the id of an event whose frame has none: another one when the platform
// says the same again.
func (s *session) makeID() string {
	return s.nonce + ":" + strconv.FormatInt(s.counter.Add(1), 10)
}
