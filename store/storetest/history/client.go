package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"leasehold/internal/loop"
	"leasehold/store/storetest"
)

// node is a process: its clients share a session and what they hold, or once held.
type node struct {
	*world

	store    storetest.Store
	instance string

	mu      sync.Mutex // guards what follows
	session int        // nobody = none is open
	last    int        // the session before; nobody = none
	grants  []*grant
}

// grant is a lease that was claimed, with the terms begun under it. It is used on
// when it is another's, as by a process that does not know.
type grant struct {
	lease, session int
	epoch          int64

	mu    sync.Mutex // guards what follows
	run   int64
	fresh []int64 // seqs of events that nobody has marked
}

// client makes one call after another.
type client struct {
	*node

	id  int
	rng *rand.Rand
}

// run makes its calls, with pauses between them.
func (c *client) run(ctx context.Context) {
	for range calls {
		pause := c.upTo(3 * time.Millisecond)
		if c.rng.IntN(30) == 0 {
			pause = ttl + c.upTo(ttl/2)
		}
		if loop.Sleep(ctx, pause) != nil {
			return
		}
		if c.h.Fail != nil && c.rng.IntN(40) == 0 {
			c.h.Fail(c.store, c.rng.IntN(2) == 0)
		}
		if !c.opened(ctx) {
			return
		}
		c.call(ctx)
	}
}

// call makes one of the calls.
func (c *client) call(ctx context.Context) {
	session := c.current()
	g := c.some()
	switch n := c.rng.IntN(100); {
	case n < 16:
		c.renew(ctx, session)
	case n < 34 || g == nil:
		c.claim(ctx, session)
	case n < 46:
		c.begin(ctx, g)
	case n < 68:
		c.accept(ctx, g)
	case n < 78:
		c.mark(ctx, g)
	case n < 86:
		c.release(ctx, g.lease, g.session, g.epoch)
	case n < 91:
		c.reap(ctx)
	case n < 97:
		c.list(ctx)
	default:
		c.end(ctx, session)
	}
}

// upTo is a time of less than d.
func (c *client) upTo(d time.Duration) time.Duration {
	return time.Duration(c.rng.Int64N(int64(d)))
}

// impatient gives some calls up while they are under way.
func (c *client) impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.rng.IntN(15) > 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.upTo(3*time.Millisecond))
}

// current is the session that is open.
func (n *node) current() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session
}

// closed notes that a session is over.
func (n *node) closed(session int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session == session {
		n.session = nobody
	}
}

// some is one of the latest grants, nil when there was none.
func (c *client) some() *grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.grants) == 0 {
		return nil
	}
	return c.grants[max(0, len(c.grants)-1-c.rng.IntN(5))]
}

// name is a session's id.
func (w *world) name(session int) string { return w.prefix + strconv.Itoa(session) }

// number is the session of an id; nobody for a free lease.
func (w *world) number(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, w.prefix))
	if err != nil {
		return nobody
	}
	return n
}

// answered turns what a call returned into an answer: refused is the error that
// says no.
func answered(err error, refused ...error) answer {
	for _, r := range refused {
		if errors.Is(err, r) {
			return no
		}
	}
	if err != nil {
		return unknown
	}
	return yes
}
