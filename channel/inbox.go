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
// until depth events wait.
type Inbox struct {
	link *Link
	in   chan heard
	dead chan struct{} // the term was killed
	done chan struct{} // run has returned

	mu     sync.Mutex // guards err, closed
	err    error
	closed bool
	wg     sync.WaitGroup // pushes in flight
}

type heard struct {
	event  *Event
	cursor []byte
	ack    func() error
}

// Inbox starts an Inbox of the link that holds at most depth events. It ends
// with Close, with the first commit or acknowledgement that fails, or with the
// kill; not with Run's context, whose end leaves time to commit what was heard.
func (l *Link) Inbox(depth int) *Inbox {
	b := &Inbox{link: l, in: make(chan heard, max(1, depth)), dead: make(chan struct{}), done: make(chan struct{})}
	l.OnKill(func() { close(b.dead) })
	l.Go(b.run)
	return b
}

// Push hands over an event, the cursor after it (nil: unchanged) and what
// acknowledges it (nil: nothing), which is called once the event is durable, in
// the order of the pushes. It blocks while the inbox is full. A nil event moves
// the cursor only. The error is what ended the inbox: end the connection with it.
func (b *Inbox) Push(e *Event, cursor []byte, ack func() error) error {
	b.mu.Lock()
	if b.err != nil || b.closed {
		defer b.mu.Unlock()
		return b.ended()
	}
	b.wg.Add(1)
	b.mu.Unlock()
	defer b.wg.Done()
	select {
	case b.in <- heard{e, cursor, ack}:
		return nil
	case <-b.done:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.ended()
	}
}

// Close commits and acknowledges what was pushed, and returns what ended the
// inbox, if anything did. No Push may be made after it.
func (b *Inbox) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		b.mu.Unlock()
		b.wg.Wait()
		close(b.in)
	} else {
		b.mu.Unlock()
	}
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Done is closed when the inbox has ended.
func (b *Inbox) Done() <-chan struct{} { return b.done }

func (b *Inbox) ended() error {
	if b.err != nil {
		return b.err
	}
	return errors.New("inbox is closed")
}

func (b *Inbox) run() {
	defer close(b.done)
	for {
		select {
		case first, ok := <-b.in:
			if !ok {
				return
			}
			if err := b.commit(b.gather(first)); err != nil {
				b.fail(err)
				return
			}
		case <-b.dead:
			b.fail(ErrKilled)
			return
		}
	}
}

func (b *Inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *Inbox) gather(first heard) []heard {
	group := []heard{first}
	for len(group) < groupMax {
		select {
		case h, ok := <-b.in:
			if !ok {
				return group
			}
			group = append(group, h)
		default:
			return group
		}
	}
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
