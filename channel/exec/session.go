package exec

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/channel"
	"leasehold/internal/budget"
	"leasehold/internal/child"
)

const (
	// depth is how many events may wait for the disk: one full commit, while the one
	// before it is written.
	depth = 256
	// pendingMax is how many bytes of events may wait for the disk. Then nobody reads
	// what the program writes, and the system makes it wait.
	pendingMax = 4 << 20
)

// session is a program that runs. It has five goroutines: run keeps the time,
// others listen to its two streams, speak to it, and wait for its end.
type session struct {
	plan    *plan
	timing  timing
	link    *channel.Link
	program *running
	speech  *speech
	chatter *chatter
	inbox   *channel.Inbox
	pending *budget.Budget // of bytes that wait for the disk
	start   time.Time
	nonce   string // makes ids where the program gives none

	signal chan struct{}  // run must look again; holds one
	heard  chan struct{}  // closed when nothing more comes
	hushed chan struct{}  // closed when nothing more comes for people
	gone   chan struct{}  // closed when the program has ended and what it has said is heard
	asks   chan struct{}  // holds one for each interaction that waits for its answer
	fenced func() bool    // nothing may be said any more
	rest   sync.WaitGroup // the goroutines beside the one that listens

	calls   atomic.Int64 // made so far: their ids
	last    atomic.Int64 // nanoseconds from start to the last sign of life
	waiting atomic.Bool  // the reader waits for the disk and hears nothing

	mu       sync.Mutex // guards what follows
	greeted  time.Time  // hello, or the last status after it, until ready; zero = no hello
	isReady  bool
	can      []string
	limits   channel.Limits
	writes   channel.Writing
	status   status
	failure  error // why we ended it
	results  map[string]chan result
	open     map[*asked]struct{} // interactions without an answer
	garbage  int                 // lines that were no messages
	nameless int                 // events without an id
}

func newSession(p *plan, t timing, link *channel.Link, r *running) *session {
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	return &session{
		plan: p, timing: t, link: link, program: r, speech: newSpeech(r.stdin), chatter: newChatter(p, link),
		pending: budget.New(pendingMax), start: time.Now(), nonce: hex.EncodeToString(nonce[:]),
		signal: make(chan struct{}, 1), heard: make(chan struct{}), hushed: make(chan struct{}), gone: make(chan struct{}), results: map[string]chan result{},
		asks: make(chan struct{}, maxAsks), open: map[*asked]struct{}{},
	}
}

// run drives the session to its end and returns why it ended, nil when ctx did.
func (s *session) run(ctx context.Context) error {
	s.inbox = s.link.Inbox(depth)
	s.fenced = func() bool { return errors.Is(context.Cause(ctx), channel.ErrFenced) }
	// The end of ctx must not end the hearing: it leaves time to say goodbye.
	hearing := context.WithoutCancel(ctx)
	asking, leave := context.WithCancel(hearing)
	defer leave()
	s.link.Go(func() {
		defer close(s.heard)
		s.listen(asking, child.NewLines(s.program.stdout, maxLine))
	})
	s.rest.Add(2)
	s.link.Go(func() {
		defer s.rest.Done()
		s.speech.run()
	})
	s.link.Go(func() {
		defer s.rest.Done()
		defer close(s.hushed)
		s.chatter.hear(hearing, child.NewLines(s.program.stderr, maxStderr))
	})
	s.speech.order(line("start", start{version, s.link.Installation(), s.plan.config, startCursor(s.link)}))

	end, ended := s.drive(ctx)
	leave()
	if !ended {
		end = s.part(ctx)
	}
	s.speech.close()
	s.hearOut()
	close(s.gone)
	s.hearWords()
	s.rest.Wait()
	stored := s.inbox.Close()

	s.mu.Lock()
	failure, last := s.failure, s.status
	s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil // the end that was asked for is none of ours
	case failure != nil:
		return failure
	case stored != nil:
		return fmt.Errorf("store what was heard: %w", stored)
	default:
		return s.plan.exited(end, last, s.chatter.lastWords())
	}
}

// drive keeps the time until the program has ended, or is to end: ctx or the
// inbox ended, or the program did not keep to the protocol.
func (s *session) drive(ctx context.Context) (end ended, ok bool) {
	timer := time.NewTimer(s.timing.hello)
	defer timer.Stop()
	pingAt := s.start.Add(s.timing.ping)
	for {
		select {
		case <-ctx.Done():
			return end, false
		case end = <-s.program.ended:
			return end, true
		case <-s.inbox.Done():
			return end, false
		case <-s.heard:
			// It has closed its standard output. Its exit status, which says more than
			// that, comes right behind or not at all.
			if s.failed() {
				return end, false
			}
			return s.awaitEnd(ctx)
		case <-s.signal:
		case <-timer.C:
		}
		now := time.Now()
		if s.overdue(now) {
			return end, false
		}
		if !now.Before(pingAt) {
			s.speech.ping()
			s.program.look()
			pingAt = now.Add(s.timing.ping)
		}
		timer.Reset(time.Until(s.next(pingAt)))
	}
}

// awaitEnd waits for the exit status of a program that has closed its output.
func (s *session) awaitEnd(ctx context.Context) (end ended, ok bool) {
	timer := time.NewTimer(s.timing.exit)
	defer timer.Stop()
	select {
	case end = <-s.program.ended:
		return end, true
	case <-timer.C:
		s.fail(channel.Failed("stdout_closed", errors.New("the program closed its standard output and went on")))
	case <-ctx.Done():
	}
	return end, false
}

// next is when something is due: a ping, or one of the bounds.
func (s *session) next(pingAt time.Time) time.Time {
	at, bound := pingAt, s.bound()
	if bound.Before(at) {
		at = bound
	}
	if dead := s.deadAt(); dead.Before(at) {
		at = dead
	}
	return at
}

// bound is until when the program must be ready, or must have said hello.
func (s *session) bound() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isReady:
		return s.start.AddDate(100, 0, 0)
	case s.greeted.IsZero():
		return s.start.Add(s.timing.hello)
	default:
		return s.greeted.Add(s.timing.ready)
	}
}

// deadAt is when the program is given up unless it says something before.
func (s *session) deadAt() time.Time {
	if s.waiting.Load() {
		return time.Now().Add(s.timing.dead) // nobody listens
	}
	return s.start.Add(time.Duration(s.last.Load()) + s.timing.dead)
}

// overdue ends the session when a bound has passed.
func (s *session) overdue(now time.Time) bool {
	switch {
	case s.failed():
		return true
	case !now.Before(s.deadAt()):
		s.program.kill() // it answers nothing: there is no use in asking
		s.fail(channel.Failed("silent", fmt.Errorf("the program said nothing for %s and did not answer pings", s.timing.dead)))
		return true
	case now.Before(s.bound()):
		return false
	}
	s.mu.Lock()
	greeted, garbage := !s.greeted.IsZero(), s.garbage
	s.mu.Unlock()
	switch {
	case greeted:
		s.fail(channel.Failed("not_ready", fmt.Errorf("the program was not ready within %s of its hello; it must say ready, or a status at least that often", s.timing.ready)))
	case garbage > 0:
		s.fail(channel.Failed("no_hello", fmt.Errorf("the program did not say hello within %s; what it wrote to standard output is not the protocol of exec", s.timing.hello)))
	default:
		s.fail(channel.Failed("no_hello", fmt.Errorf("the program did not say hello within %s", s.timing.hello)))
	}
	return true
}

// part asks the program to stop, harder and harder, and returns its end. Fenced, it
// kills at once.
func (s *session) part(ctx context.Context) ended {
	cause := context.Cause(ctx)
	if s.fenced() {
		s.program.kill()
		return <-s.program.ended
	}
	s.deferAll() // who goes at once says it before
	s.speech.order(line("stop", stop{reasonOf(cause)}))
	for _, step := range []struct {
		wait time.Duration
		then func()
	}{
		{s.timing.leave, func() {
			s.speech.close() // what reads its input to the end ends now, where there are no signals, too
			s.program.terminate()
		}},
		{s.timing.end, s.program.kill},
	} {
		timer := time.NewTimer(step.wait)
		select {
		case end := <-s.program.ended:
			timer.Stop()
			return end
		case <-timer.C:
			step.then()
		}
	}
	return <-s.program.ended
}

// reasonOf is why a program is to stop, in a word.
func reasonOf(cause error) string {
	for reason, err := range map[string]error{
		"draining": channel.ErrDraining, "replaced": channel.ErrReplaced, "removed": channel.ErrRemoved, "parked": channel.ErrParked,
	} {
		if errors.Is(cause, err) {
			return reason
		}
	}
	return "failed"
}

// hearOut waits until what the program has written before its end is heard. Its
// output ends with the last process that holds it; one that nobody could kill must
// not hold us up.
func (s *session) hearOut() {
	for stuck := false; !stuck; {
		before := s.last.Load()
		timer := time.NewTimer(s.timing.drain)
		select {
		case <-s.heard:
			stuck = true
		case <-timer.C:
			stuck = s.last.Load() == before && !s.waiting.Load()
		}
		timer.Stop()
	}
	_ = s.program.stdout.Close() // it was read to its end, or has none
	<-s.heard
}

// hearWords waits until what the program has written for people is heard: it may
// say why it ended.
func (s *session) hearWords() {
	timer := time.NewTimer(s.timing.drain)
	defer timer.Stop()
	select {
	case <-s.hushed:
	case <-timer.C:
	}
	_ = s.program.stderr.Close() // a process that did not die may hold its other end
}

// alive is a sign of life: anything that came.
func (s *session) alive() {
	s.last.Store(int64(time.Since(s.start)))
	s.link.Alive()
}

// fail says why we end the session; the first reason counts.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.failure == nil {
		s.failure = err
	}
	s.mu.Unlock()
	s.nudge()
}

func (s *session) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil
}

func (s *session) nudge() {
	select {
	case s.signal <- struct{}{}:
	default: // run will look in any case
	}
}
