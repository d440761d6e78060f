package engine

import (
	"slices"
	"time"
)

// dialing is the dial limiter: so many dials per second and type, so many at
// once in all. A thousand links that come back together must not look like an
// attack, and need not.
type dialing struct {
	types    map[string]*typeDials
	names    []string // of types, sorted
	inFlight int
	next     Instant // when a token is due for somebody who waits
}

type typeDials struct {
	queue  []*unit
	second []successor // wait for an overlapping socket; they go first
	tokens float64
	at     Instant // tokens were counted at
	free   bool    // it dials nothing, and waits for no token
}

type successor struct {
	id   string
	term uint64
}

// burst is how many dials a quiet type may make at once.
const burst = 10

func (c *Core) typeOf(u *unit) *typeDials {
	t := c.dials.types[u.row.Type]
	if t == nil {
		t = &typeDials{tokens: burst, at: c.now, free: c.offline(u)}
		c.dials.types[u.row.Type] = t
		i, _ := slices.BinarySearch(c.dials.names, u.row.Type)
		c.dials.names = slices.Insert(c.dials.names, i, u.row.Type)
	}
	return t
}

func (c *Core) offline(u *unit) bool { return c.o.offline != nil && c.o.offline(u.row.Type) }

func (c *Core) enqueue(u *unit) {
	u.queued = true
	t := c.typeOf(u)
	t.queue = append(t.queue, u)
}

func (c *Core) wantSuccessor(u *unit) {
	t := c.typeOf(u)
	t.second = append(t.second, successor{u.id, u.term.n})
}

// token takes a dial from the type's bucket, or notes when there will be one.
func (c *Core) token(t *typeDials) bool {
	if t.free {
		return true
	}
	if t.tokens >= 1 {
		t.tokens--
		return true
	}
	wait := time.Duration((1-t.tokens)/c.o.rate*float64(time.Second)) + time.Microsecond
	c.dials.next = min(c.dials.next, c.now.Add(wait))
	return false
}

// pump begins the terms that the limiter lets through.
func (c *Core) pump() {
	c.dials.next = Never
	for _, name := range c.dials.names {
		t := c.dials.types[name]
		t.tokens = min(burst, t.tokens+c.o.rate*c.now.Sub(t.at).Seconds())
		t.at = c.now
		for len(t.second) > 0 && c.token(t) {
			c.emit(actSuccessor(t.second[0]))
			t.second = t.second[1:]
		}
		for len(t.queue) > 0 && c.dials.inFlight < c.o.inFlight && c.mayConnect() {
			u := t.queue[0]
			if !u.queued || !c.wantTerm(u) || u.row.Type != name {
				u.queued = false
				t.queue = t.queue[1:]
				c.settle(u)
				continue
			}
			if !c.token(t) {
				break
			}
			t.queue = t.queue[1:]
			c.begin(u)
		}
	}
}

// mayConnect: not when the fence is so near that the next renewal may miss it.
func (c *Core) mayConnect() bool {
	return c.session.open && (c.o.sole || c.session.fence.Sub(c.now) >= c.o.timing.RenewEvery)
}
