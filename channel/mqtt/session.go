package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/channel"
)

const (
	// polite bounds the goodbye, commits included: well within channel.Goodbye, and
	// short enough that a mute broker does not hold up a restart.
	polite = 800 * time.Millisecond
	// farewell is how long we wait for the broker to close, once it was told that we
	// go: what we close with bytes unread is a reset, and may take our last
	// acknowledgements with it.
	farewell = 300 * time.Millisecond
	// lastWords is how long a broken write waits for the reader, which often hears
	// the broker's reason right behind it.
	lastWords = time.Second
	// depth is how many messages may wait for the disk: one full commit, while the
	// one before it is written.
	depth = 256
)

// session is a connection that is up. At rest it has two goroutines: run, which
// keeps the time and sends what is sent first, and listen, which never writes. The
// inbox has one while it commits and then acknowledges. A node may have thousands:
// whatever lasts here is paid for that often.
type session struct {
	plan     *plan
	link     *channel.Link
	wire     *wire
	inbox    *channel.Inbox
	clientID string
	start    time.Time
	lend     func(*session) // to those who publish; nil takes it back
	out      *outbox
	proof    proof

	pos      *position // the reader's; run's again, once it has ended
	moved    bool      // pos is not what was last handed to the inbox
	asked    map[uint16]request
	refusals []refusal
	weak     uint64 // messages of QoS 0, which are numbered apart
	said     error  // why the broker ended the connection, as it said

	ended  chan struct{} // the reader has returned
	signal chan struct{} // run must look again; holds one

	last    atomic.Int64 // nanoseconds from start to the last sign of life
	greeted atomic.Int64 // nanoseconds from start to the CONNACK; 0 = none yet
	ready   atomic.Bool  // subscribed
	leaving atomic.Bool  // what comes is not for us any more
	fenced  atomic.Bool  // nothing may be written any more
	every   atomic.Int64 // nanoseconds: the keep-alive that both sides agreed to

	mu   sync.Mutex // guards todo
	todo [][]byte   // packets for run to send

	failOnce sync.Once
	failure  error // why we ended the connection; read once everything has ended
}

func newSession(p *plan, link *channel.Link, conn net.Conn, pos *position, lend func(*session)) *session {
	s := &session{
		lend: lend, plan: p, link: link, wire: newWire(conn, p.keepAlive), clientID: pos.Place[len(p.server)+1:], start: time.Now(), out: newOutbox(), pos: pos,
		asked: map[uint16]request{}, ended: make(chan struct{}), signal: make(chan struct{}, 1),
	}
	s.every.Store(int64(p.keepAlive))
	s.wire.alive, s.wire.listens = s.alive, s.stamp
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
	// A write that is under way when ctx ends must not hold up the goodbye.
	hurry := context.AfterFunc(ctx, func() { s.wire.hurry(polite) })
	broken := s.drive(ctx)
	hurry()
	s.lend(nil)
	switch {
	case ctx.Err() != nil:
		s.goodbye(context.Cause(ctx))
	case broken != nil:
		s.await(lastWords)
	}
	select {
	case <-s.ended: // what it heard last says more than a write that failed
		broken = nil
	default:
	}
	s.leaving.Store(true)
	s.wire.hang()
	stored := s.inbox.Close() // first: the reader may wait for room in it
	<-s.ended
	s.out.close()
	switch {
	case ctx.Err() != nil:
		s.judge(false, true)
		return nil //nolint:nilerr // however the connection ended, ctx did first
	case s.failure != nil:
		s.judge(false, false)
		return s.failure
	case s.said != nil:
		s.judge(false, false)
		return s.said
	case stored != nil:
		return fmt.Errorf("store what was heard: %w", stored)
	case broken != nil:
		heard = broken
	case heard == nil:
		heard = errEnded // the reader panicked, which the term knows better
	}
	s.judge(!faulty(heard), false)
	return s.broken(heard)
}

// judge counts connections that the broker closed without a word soon after it took
// them. The count outlives us in the cursor: a term has no other memory. What ends
// in another way ends the count, unless it is too young to tell: ours.
func (s *session) judge(unexplained, ours bool) {
	if greeted := time.Duration(s.greeted.Load()); greeted > 0 { // a broker that is down says nothing of other clients
		young := time.Since(s.start)-greeted < early
		count := 0
		switch {
		case unexplained && young:
			count = s.pos.Early + 1
		case ours && young:
			count = s.pos.Early
		}
		s.moved = s.moved || count != s.pos.Early
		s.pos.Early = count
	}
	if !s.moved || s.fenced.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	_ = s.link.Accept(ctx, channel.Batch{Cursor: s.pos.encode()}) // a count that is lost is counted again
}

// drive says what is said first and keeps the time until ctx, the reader or the
// inbox ends, or a write fails, which it returns.
func (s *session) drive(ctx context.Context) error {
	hello, err := s.plan.codec.connect(s.plan, s.clientID)
	if err != nil {
		return err
	}
	if err := s.send(hello); err != nil {
		return err
	}
	beat := newHeartbeat(s)
	defer beat.stop()
	for {
		if err := s.catchUp(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ended:
			return nil
		case <-s.inbox.Done():
			return nil
		case <-s.signal:
			beat.reset()
		case <-beat.due():
			if err := beat.tick(); err != nil {
				return err
			}
		}
	}
}

// later has run send packets.
func (s *session) later(packets ...[]byte) {
	s.mu.Lock()
	s.todo = append(s.todo, packets...)
	s.mu.Unlock()
	s.wake()
}

func (s *session) catchUp() error {
	s.mu.Lock()
	todo := s.todo
	s.todo = nil
	s.mu.Unlock()
	for _, packet := range todo {
		if err := s.send(packet); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) wake() {
	select {
	case s.signal <- struct{}{}:
	default: // run will look in any case
	}
}

// send writes a packet. One that is not taken ends the connection.
func (s *session) send(packet []byte) error {
	err := s.wire.write(packet)
	if errors.Is(err, errNotWritten) && !s.leaving.Load() {
		s.fail(channel.Failed("write_timeout", err))
	}
	return err
}

// fail ends the connection for a reason of our own.
func (s *session) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		s.wire.hang()
	})
}

// await gives the reader a moment to come to its end.
func (s *session) await(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
	}
}

// goodbye commits and acknowledges what was heard, and says that we go; fenced, it
// does neither. The session stays at the broker, which keeps for us what is
// published meanwhile.
func (s *session) goodbye(cause error) {
	s.leaving.Store(true)
	if errors.Is(cause, channel.ErrFenced) {
		s.fenced.Store(true)
		s.wire.hang()
		return
	}
	began := time.Now()
	_ = s.inbox.Close()
	left := polite - time.Since(began)
	if s.greeted.Load() > 0 && left > 0 && s.wire.write(s.plan.codec.goodbye()) == nil {
		s.await(min(farewell, left))
	}
}

// alive is a sign of life: anything that came.
func (s *session) alive() {
	s.stamp()
	s.link.Alive()
}

// stamp has silence begin now.
func (s *session) stamp() { s.last.Store(int64(time.Since(s.start))) }
