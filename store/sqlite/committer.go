package sqlite

import (
	"context"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// queueLength bounds what waits. Whoever comes later waits for a place, in order.
	queueLength = 1024
	// foreignPoll is how often an idle committer looks for commits of other
	// programs: what they change is acted on within a second, and looking reads a
	// word of shared memory.
	foreignPoll = time.Second
)

// op is a statement of its own transaction: a session's, a lease's, an
// administrator's. Without tx it runs outside of any.
type op struct {
	run  func(*writer) error
	tx   bool
	done chan error // holds one
}

// committer is the goroutine through which every write goes. Callers share
// commits and wait for them; their contexts end their wait, never a statement.
//
// There are two queues. Items (batches, marks, states) are taken in the order
// they came, in groups of one transaction each. Ops stand at the head: they wait
// for the running group at most. So a BeginTerm or Release may overtake accepts
// of the same lease that were queued before it; these are then fenced by run or
// owner and take no effect at all, which is what their fence is for, and batches
// never overtake batches.
type committer struct {
	s    *Store
	w    *writer
	head chan *op
	tail chan item
	quit chan struct{} // closed: finish what waits, and end
	done chan struct{} // closed: the goroutine has ended

	seen       int64         // data_version, as last answered
	lastGroup  int           // items in the group before
	lastCommit time.Duration // how long its commit took
}

func newCommitter(s *Store, w *writer) *committer {
	return &committer{
		s: s, w: w, head: make(chan *op, queueLength), tail: make(chan item, queueLength),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
}

// run is the goroutine's whole life.
func (c *committer) run() {
	defer close(c.done)
	poll := time.NewTicker(foreignPoll)
	defer poll.Stop()
	for {
		select {
		case o := <-c.head:
			c.runOp(o)
			continue
		default:
		}
		select {
		case o := <-c.head:
			c.runOp(o)
		case first := <-c.tail:
			c.runGroup(c.gather(first))
		case <-poll.C:
			_ = c.look() // whoever lists next looks again and is told
		case <-c.quit:
			c.finish()
			return
		}
	}
}

// finish serves what is in the queues and does not wait for more.
func (c *committer) finish() {
	for {
		select {
		case o := <-c.head:
			c.runOp(o)
			continue
		default:
		}
		select {
		case o := <-c.head:
			c.runOp(o)
		case first := <-c.tail:
			c.runGroup(c.gather(first))
		default:
			return
		}
	}
}

// do runs f in a transaction of its own, at the head of the queue, and waits.
// When ctx ends first, f may still take effect.
func (c *committer) do(ctx context.Context, f func(*writer) error) error {
	return c.submit(ctx, &op{run: f, tx: true, done: make(chan error, 1)})
}

// outside runs f on the writing connection outside of a transaction.
func (c *committer) outside(ctx context.Context, f func(*writer) error) error {
	return c.submit(ctx, &op{run: f, done: make(chan error, 1)})
}

func (c *committer) submit(ctx context.Context, o *op) error {
	select {
	case c.head <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.quit:
		return errClosed
	}
	return c.await(ctx, o.done)
}

// add queues an item and waits for its group.
func (c *committer) add(ctx context.Context, i item, done chan error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.tail <- i:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.quit:
		return errClosed
	}
	return c.await(ctx, done)
}

func (c *committer) await(ctx context.Context, done chan error) error {
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

func (c *committer) runOp(o *op) {
	err := c.s.broken()
	if err == nil {
		if o.tx {
			err = c.transact(func() error { return o.run(c.w) })
		} else {
			err = c.s.judge(c.bare(o))
		}
	}
	o.done <- err
}

func (c *committer) bare(o *op) error {
	if c.w.conn == nil {
		if err := c.w.connect(); err != nil {
			return err
		}
	}
	return o.run(c.w)
}

// transact runs f in a transaction and commits it, unless it changed nothing. What
// it returns is final: an error means that nothing is on the disk, unless the
// commit itself failed.
func (c *committer) transact(f func() error) error {
	if err := c.w.begin(c.s.millis()); err != nil {
		return c.s.judge(c.lost(err))
	}
	changed, err := c.changes(f)
	if err != nil {
		c.w.rollback()
		return c.s.judge(c.lost(err))
	}
	if !changed {
		// No trace, not even that of a counter which an INSERT moved on before it found
		// the row there.
		c.w.rollback()
		return c.s.judge(c.s.sameFiles())
	}
	began := time.Now()
	err = c.commit()
	if c.w.bump { // after an error, too: it may be on the disk, and a repeat would find nothing to change
		c.s.structure.Add(1)
		c.s.version.Add(1)
	}
	if err != nil {
		c.w.rollback()
		return c.s.judge(c.lost(err))
	}
	c.lastCommit = time.Since(began)
	if c.w.wake {
		c.s.changes.Wake()
	}
	if !c.w.note {
		c.s.commits.Add(1)
	}
	// Written into a file that is no longer there: nobody may take it for kept.
	return c.s.judge(c.s.sameFiles())
}

// changes runs f and reports whether a row was changed by it.
func (c *committer) changes(f func() error) (bool, error) {
	var before, after int64
	if err := c.w.get(sqlTotalChanges, nil, &before); err != nil {
		return false, err
	}
	if err := f(); err != nil {
		return false, err
	}
	err := c.w.get(sqlTotalChanges, nil, &after)
	return after != before, err
}

const sqlTotalChanges = `SELECT total_changes()`

func (c *committer) commit() error {
	hook := c.s.hook.Load()
	if hook != nil {
		if err := (*hook)(false); err != nil {
			return err
		}
	}
	if err := c.w.commit(); err != nil {
		return err
	}
	if hook != nil {
		return (*hook)(true)
	}
	return nil
}

// lost gives up a connection whose disk failed under it: the next transaction
// starts on a new one.
func (c *committer) lost(err error) error {
	if p, _ := code(err); p == sqlite3.SQLITE_IOERR {
		_ = c.w.close(true)
	}
	return err
}

// look asks whether another program has committed; what it changed is then
// listed again.
func (c *committer) look() error {
	v, err := c.w.dataVersion()
	if err != nil {
		return c.s.judge(c.lost(err))
	}
	if v != c.seen {
		if c.seen != 0 {
			c.s.structure.Add(1)
			c.s.version.Add(1)
			c.s.commits.Add(1)
			c.s.changes.Wake()
		}
		c.seen = v
	}
	return nil
}
