package postgres

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"leasehold/internal/loop"
)

const (
	// writerCount is how many goroutines commit groups: two were faster than one and
	// than four, in the measurements behind this design.
	writerCount = 2
	// queueLength bounds what waits for one of them. Whoever comes later waits for a
	// place, in order.
	queueLength = 1024
	// groupRows is how many events, marks and states share a statement. The curve bends
	// at 64 to 256; at 512 a slow disk still gains and nobody waits noticeably longer.
	groupRows = 512
	// groupBytes bounds the bodies of a group.
	groupBytes = 16 << 20
	// linger is how long a group waits for those who were woken by the one before, when
	// that took at least lingerAbove: without it half of many producers form each group.
	linger      = 500 * time.Microsecond
	lingerAbove = 2 * time.Millisecond
)

// item is one caller's part of a group: *accept, *marks or *states.
type item interface {
	// size is the rows that it counts for, and the bytes.
	size() (rows, bytes int)
	// settle wakes the caller: err is the group's failure, nil when the item's own
	// answer counts.
	settle(err error)
}

// committer is a goroutine that commits what many callers brought together. A
// lease's batches all go to the same one, in the order of the calls, so that a
// cursor is never stored before the events that it stands behind.
type committer struct {
	s     *Store
	queue chan item
	quit  chan struct{} // closed: finish what waits, and end
	done  chan struct{} // closed: the goroutine has ended

	lastGroup int           // items in the group before
	lastTook  time.Duration // to commit it
}

func newCommitter(s *Store) *committer {
	return &committer{s: s, queue: make(chan item, queueLength), quit: make(chan struct{}), done: make(chan struct{})}
}

// writer returns the committer of a lease.
func (s *Store) writer(lease string) *committer {
	h := fnv.New32a()
	_, _ = h.Write([]byte(lease)) // it never fails
	return s.writers[h.Sum32()%writerCount]
}

// run is the goroutine's whole life.
func (c *committer) run() {
	defer close(c.done)
	for {
		select {
		case first := <-c.queue:
			c.commit(c.gather(first))
		case <-c.quit:
			for {
				select {
				case first := <-c.queue:
					c.commit(c.gather(first))
				default:
					return
				}
			}
		}
	}
}

// add queues an item and waits for its group. When ctx ends first, it may still
// take effect.
func (c *committer) add(ctx context.Context, i item, done chan error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.quit:
		return errClosed
	default:
	}
	select {
	case c.queue <- i:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.quit:
		return errClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the outcome is unknown: %w", ctx.Err())
	case <-c.done:
		select {
		case err := <-done:
			return err
		default: // it came into the queue after the last look at it
			return errClosed
		}
	}
}

// gather takes what waits behind first, up to a group's size.
func (c *committer) gather(first item) []item {
	items := []item{first}
	rows, bytes := first.size()
	lingered := c.lastGroup < 2 || c.lastTook < lingerAbove
	for rows < groupRows && bytes < groupBytes {
		select {
		case i := <-c.queue:
			r, b := i.size()
			rows, bytes, items = rows+r, bytes+b, append(items, i)
			continue
		default:
		}
		if lingered || rows >= groupRows/2 {
			break
		}
		lingered = true
		_ = loop.Sleep(context.Background(), linger)
	}
	c.lastGroup = len(items)
	return items
}

// commit writes the items, each kind in a statement of its own: a kind that fails
// does not fail the others.
func (c *committer) commit(items []item) {
	began := time.Now()
	var accepts []*accept
	var sets []*marks
	var links []*states
	for _, i := range items {
		switch i := i.(type) {
		case *accept:
			accepts = append(accepts, i)
		case *marks:
			sets = append(sets, i)
		case *states:
			links = append(links, i)
		}
	}
	together(c.s, accepts, c.s.writeAccepts)
	together(c.s, sets, c.s.writeMarks)
	together(c.s, links, c.s.writeStates)
	c.lastTook = time.Since(began)
}

// together writes items of one kind with one statement. When the database refuses
// what is in one of them, each is written by itself, so that only that one fails.
func together[I item](s *Store, items []I, f func(context.Context, []I) error) {
	if len(items) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	err := s.repeat(ctx, func() error { return f(ctx, items) })
	if dataError(err) && len(items) > 1 {
		for _, i := range items {
			together(s, []I{i}, f)
		}
		return
	}
	for _, i := range items {
		i.settle(err)
	}
}
