package channel

import (
	"context"
	"errors"
	"sync"
)

// groupMax bounds one commit of an Inbox: the knee of the group-commit curve,
// above which a group only adds latency.
const groupMax = 256

// Inbox commits what a reader hears, in order, many events per commit, and
// acknowledges each after the commit that holds it: one commit per event would
// be 48 events a second on a slow disk. The reader never waits for the disk
// until depth events wait. At rest an Inbox has no goroutine and next to no
// memory, for a node may have thousands.
type Inbox struct {
	link  *Link
	depth int
	done  chan struct{} // closed when the inbox has ended

	mu       sync.Mutex // guards what follows
	changed  *sync.Cond // room has been made, or the inbox has ended
	waiting  []heard
	busy     bool // a goroutine commits
	stopping bool // Close was called
	dead     bool // the term was killed
	ended    bool
	err      error // what ended it, if not Close
}

type heard struct {
	event  *Event
	cursor []byte
	ack    func() error
}

var errInboxClosed = errors.New("inbox is closed")

// Inbox starts an Inbox of the link that holds at most depth events. It ends
// with Close, with the first commit or acknowledgement that fails, or with the
// kill; not with Run's context, whose end leaves time to commit what was heard.
func (l *Link) Inbox(depth int) *Inbox {
	b := &Inbox{link: l, depth: max(1, depth), done: make(chan struct{})}
	b.changed = sync.NewCond(&b.mu)
	l.OnKill(b.kill)
	return b
}

// Push hands over an event, the cursor after it (nil: unchanged) and what
// acknowledges it (nil: nothing), which is called once the event is durable, in
// the order of the pushes. It blocks while the inbox is full. A nil event moves
// the cursor only. The error is what ended the inbox: end the connection with it.
func (b *Inbox) Push(e *Event, cursor []byte, ack func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) >= b.depth && !b.ended && !b.stopping {
		b.changed.Wait()
	}
	if b.err != nil {
		return b.err
	}
	if b.ended || b.stopping {
		return errInboxClosed
	}
	b.waiting = append(b.waiting, heard{e, cursor, ack})
	if !b.busy {
		b.busy = true
		b.link.Go(b.run)
	}
	return nil
}

// Close commits and acknowledges what was pushed, and returns what ended the
// inbox, if anything did. A Push that waits for room, or comes later, is refused.
func (b *Inbox) Close() error {
	b.mu.Lock()
	b.stopping = true
	b.changed.Broadcast()
	if !b.busy {
		b.end(nil)
	}
	b.mu.Unlock()
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Done is closed when the inbox has ended.
func (b *Inbox) Done() <-chan struct{} { return b.done }

// kill ends the inbox; a commit that is under way ends it when it returns.
func (b *Inbox) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = true
	if !b.busy {
		b.end(ErrKilled)
	}
}

// end ends the inbox, once. The lock is held.
func (b *Inbox) end(err error) {
	if b.ended {
		return
	}
	b.ended, b.err, b.waiting = true, err, nil
	b.changed.Broadcast()
	close(b.done)
}

// run commits until nothing waits.
func (b *Inbox) run() {
	returned := false
	defer func() {
		if !returned { // an acknowledgement panicked; the term ends with it
			b.fail(errors.New("an acknowledgement panicked"))
		}
	}()
	for {
		group := b.take()
		if len(group) == 0 {
			break
		}
		if err := b.commit(group); err != nil {
			b.fail(err)
			break
		}
	}
	returned = true
}

func (b *Inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = false
	b.end(err)
}

// take returns what shall be committed next. Nothing: run has nothing left to do,
// and whoever pushes next starts it again.
func (b *Inbox) take() []heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.dead:
		b.busy = false
		b.end(ErrKilled)
		return nil
	case len(b.waiting) == 0:
		b.busy = false
		if b.stopping {
			b.end(nil)
		}
		return nil
	}
	n := min(len(b.waiting), groupMax)
	group := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil // nothing is kept at rest
	}
	b.changed.Broadcast()
	return group
}

func (b *Inbox) commit(group []heard) error {
	var batch Batch
	for _, h := range group {
		if h.event != nil {
			batch.Events = append(batch.Events, *h.event)
		}
		if h.cursor != nil {
			batch.Cursor = h.cursor
		}
	}
	// The backend bounds the commit and the kill ends it: no context of ours does.
	if err := b.link.Accept(context.Background(), batch); err != nil && !errors.Is(err, ErrTooLarge) {
		return err
	}
	for _, h := range group {
		if h.ack == nil {
			continue
		}
		if err := h.ack(); err != nil {
			return err
		}
	}
	return nil
}
