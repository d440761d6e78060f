package engine

import (
	"container/heap"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// world is one simulated run: nodes, a store, platforms, and true time.
type world struct {
	seed  uint64
	rand  *rand.Rand
	bug   planted
	sole  bool
	now   Instant // true time; the store's clock is it plus dbStep
	queue eventQueue
	order uint64

	db    *simStore
	nodes []*simNode
	conns map[string][]*simConn // live sockets by installation, as the platform sees them

	planned    int          // faults of the plan
	without    map[int]bool // those of them that this run leaves out
	faults     []string
	violations []string
	broken     int // violations of safety; the others are of liveness
	hash       hash.Hash64
	slowKills  bool // every socket takes nearly all of D to close
	calm       bool // nothing goes wrong by itself
	watch      func(c *simConn, open bool)
}

const (
	simFaultsFor = 150 * time.Second
	simQuietFor  = 150 * time.Second // every fault healed: all must be well at its end
)

func newWorld(seed uint64, bug planted) *world { return newWorldWithout(seed, bug, nil) }

func newWorldWithout(seed uint64, bug planted, without map[int]bool) *world {
	w := &world{without: without, seed: seed, rand: rand.New(rand.NewPCG(seed, 0x1ea5e)), bug: bug, hash: fnv.New64a(), conns: map[string][]*simConn{}}
	w.db = newSimStore(w)
	w.sole = w.rand.IntN(5) == 0
	nodes := 1
	if !w.sole {
		nodes = 2 + w.rand.IntN(2)
	}
	for i := range 4 + w.rand.IntN(5) {
		w.db.add(fmt.Sprintf("bot-%d", i), w.rand)
	}
	for i := range nodes {
		n := newSimNode(w, i)
		w.nodes = append(w.nodes, n)
		w.after(w.upTo(2*time.Second), n.boot)
	}
	w.plan()
	return w
}

func (w *world) run() {
	end := Instant(0).Add(simFaultsFor + simQuietFor)
	events, last := 0, Instant(0)
	for len(w.queue) > 0 && w.queue[0].at <= end {
		if events++; w.queue[0].at > last+Instant(time.Millisecond) {
			events, last = 0, w.queue[0].at
		} else if events > 20_000 {
			w.broke("time stands still: 20,000 events within a millisecond")
			return
		}
		e := heap.Pop(&w.queue).(*event)
		w.now = e.at
		e.f()
		if len(w.violations) > 20 {
			return
		}
	}
	w.now = end
	w.judgeEnd()
}

func (w *world) after(d time.Duration, f func()) { w.at(w.now.Add(d), f) }

func (w *world) at(t Instant, f func()) {
	w.order++
	heap.Push(&w.queue, &event{max(t, w.now), w.order, f})
}

func (w *world) upTo(d time.Duration) time.Duration { return between(w.rand, 0, d) }

// often is true in p of 100 cases.
func (w *world) often(p int) bool { return w.rand.IntN(100) < p }

// mostly returns a duration up to d that is close to d in a third of the cases:
// margins are tested at their edge.
func (w *world) mostly(d time.Duration) time.Duration {
	if w.often(33) {
		return d - w.upTo(d/20)
	}
	return w.upTo(d)
}

func (w *world) broke(format string, args ...any) {
	w.broken++
	w.violations = append(w.violations, fmt.Sprintf("%8.3fs ", time.Duration(w.now).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) stuck(format string, args ...any) {
	w.violations = append(w.violations, "at the end: "+fmt.Sprintf(format, args...))
}

// trace adds to the run's hash, by which two runs of one seed are compared.
func (w *world) trace(format string, args ...any) {
	_, _ = fmt.Fprintf(w.hash, format, args...)
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%8.3fs ", time.Duration(w.now).Seconds())+fmt.Sprintf(format, args...))
}

// judgeEnd: with every fault healed, each wanted installation is connected once.
func (w *world) judgeEnd() {
	for _, id := range w.db.ids {
		row := w.db.rows[id]
		live := 0
		for _, c := range w.conns[id] {
			if c.ready {
				live++
			}
		}
		want := 0
		if row.Enabled && !w.db.bad[id] {
			want = 1
		}
		if w.db.bad[id] && live == 0 {
			continue
		}
		if live != want && (want != 1 || !w.waits(id)) {
			w.stuck("%s: got %d connections, want %d (lease %+v, %s)", id, live, want, w.db.leases[id], w.describe(id))
		}
	}
	for _, n := range w.nodes {
		if n.core != nil && n.up && n.core.sick != nil {
			w.stuck("%s still believes that the store takes nothing", n.name)
		}
	}
}

// waits reports whether the owner of id waits out a backoff that was right when
// it began.
func (w *world) waits(id string) bool {
	holders := 0
	for _, n := range w.nodes {
		if n.core == nil || !n.up {
			continue
		}
		u := n.core.units[id]
		if u != nil && u.held && !u.lost && !u.drop && u.term == nil && u.notBefore > n.bootNow() && u.notBefore < n.bootNow().Add(backoffLong) && w.db.leases[id].owner == u.owner {
			holders++
		}
	}
	return holders == 1
}

func (w *world) describe(id string) string {
	s := ""
	for _, n := range w.nodes {
		if n.core == nil || !n.up {
			s += n.name + " is dead; "
			continue
		}
		if u := n.core.units[id]; u != nil {
			s += fmt.Sprintf("%s: session %v held %v lost %v drop %v dropped %v busy %d queued %v term %v notBefore %v reason %q avoid %v free %v; ", n.name,
				n.core.session.open, u.held, u.lost, u.drop, u.dropped, u.busy, u.queued, u.term != nil, time.Duration(u.notBefore-n.bootNow()), u.reason, time.Duration(u.avoid-n.bootNow()), u.freeAt != Never)
		}
	}
	return s
}

// opened and closed keep what the platform sees, and judge it: two live sockets
// of one installation are two owners.
func (w *world) opened(c *simConn) {
	w.conns[c.id] = append(w.conns[c.id], c)
	c.live = true
	w.judgeOverlap(c.id)
	if w.watch != nil {
		w.watch(c, true)
	}
}

func (w *world) closed(c *simConn) {
	if !c.live {
		return
	}
	c.live = false
	if w.watch != nil {
		w.watch(c, false)
	}
	list := w.conns[c.id]
	for i, have := range list {
		if have == c {
			w.conns[c.id] = append(list[:i], list[i+1:]...)
		}
	}
}

// wokeGrace is how long a node that stood still may keep its sockets after it woke.
const wokeGrace = 200 * time.Millisecond

// judgeOverlap counts sockets of nodes that are awake. One that stood still may
// have kept a socket; when it wakes, it has wokeGrace to close it.
func (w *world) judgeOverlap(id string) {
	awake := 0
	names := ""
	for _, c := range w.conns[id] {
		if c.node.frozen || w.now < c.node.wokeUntil {
			continue
		}
		awake++
		names += " " + c.node.name
	}
	if awake > 1 {
		w.broke("%s has %d connections:%s", id, awake, names)
	}
}

// judgeFreed: a lease is freed by its owner, and only once that has given up the
// very grant that is freed.
func (w *world) judgeFreed(id string, l *simLease) {
	for _, n := range w.nodes {
		if n.core == nil || !n.up {
			continue
		}
		if u := n.core.units[id]; u != nil && u.held && !u.lost && !u.drop && u.owner == l.owner && u.epoch == l.epoch {
			w.broke("%s: epoch %d was freed while %s held it", id, l.epoch, n.name)
		}
	}
}

// said is judged always: nothing may be said beside another's live connection.
func (w *world) said(c *simConn) {
	for _, other := range w.conns[c.id] {
		if other != c && other.node != c.node && !other.node.frozen && other.ready && other.term.t.Epoch > c.term.t.Epoch {
			w.broke("%s of %s spoke under epoch %d beside epoch %d of %s", c.id, c.node.name, c.term.t.Epoch, other.term.t.Epoch, other.node.name)
		}
	}
}

type event struct {
	at    Instant
	order uint64
	f     func()
}

type eventQueue []*event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(*event)) }
func (q *eventQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
