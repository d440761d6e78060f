package engine

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fleet is a simulated cluster in which nothing goes wrong but what the test does:
// who holds what, who is moved, and for how long an installation has no connection.
type fleet struct {
	*world
	t      *testing.T
	ids    []string
	closed map[string]Instant
	gaps   []time.Duration
	opened map[string][]Instant // by node
}

// died is what happens to a node that says no goodbye.
const died = "one died"

// tick is how often a node looks at what it should hold.
const tick = 5 * time.Second

func newFleet(t *testing.T, n int, weights ...int) *fleet {
	w := &world{seed: 1, rand: rand.New(rand.NewPCG(1, uint64(n))), hash: fnv.New64a(), conns: map[string][]*simConn{}, calm: true}
	f := &fleet{world: w, t: t, closed: map[string]Instant{}, opened: map[string][]Instant{}}
	w.watch = f.note
	w.db = newSimStore(w)
	for i := range n {
		id := fmt.Sprintf("bot-%04d", i)
		w.db.add(id, w.rand)
		w.db.bad[id] = false
		f.ids = append(f.ids, id)
	}
	for _, weight := range weights {
		f.join(weight)
	}
	f.pass(2 * time.Minute)
	f.wantEven("before anything happens")
	return f
}

func (f *fleet) note(c *simConn, open bool) {
	if !open {
		f.closed[c.id] = f.now
		return
	}
	f.opened[c.node.name] = append(f.opened[c.node.name], f.now)
	if at, ok := f.closed[c.id]; ok {
		f.gaps = append(f.gaps, f.now.Sub(at))
		delete(f.closed, c.id)
	}
}

func (f *fleet) join(weight int) {
	n := newSimNode(f.world, len(f.nodes))
	n.weight = weight
	f.nodes = append(f.nodes, n)
	n.boot()
}

func (f *fleet) leave(n *simNode) {
	n.gone = true
	n.step(inDrain{})
}

func (f *fleet) die(n *simNode) {
	n.gone = true
	n.crash()
}

// pass lets true time go by.
func (f *fleet) pass(d time.Duration) {
	end := f.now.Add(d)
	for len(f.queue) > 0 && f.queue[0].at <= end {
		e := heap.Pop(&f.queue).(*event)
		f.now = e.at
		e.f()
	}
	f.now = end
}

// held counts the leases of each node whose session stands.
func (f *fleet) held() map[string]int {
	held := map[string]int{}
	for _, id := range f.ids {
		if s := f.db.sessions[f.db.leases[id].owner]; s != nil {
			held[s.instance]++
		}
	}
	return held
}

// even reports whether every node that is up holds its share, by 10 % and one.
func (f *fleet) even() bool {
	held, sum := f.held(), 0
	for _, n := range f.nodes {
		if n.up && !n.gone {
			sum += n.weight
		}
	}
	for _, n := range f.nodes {
		share := float64(len(f.ids)*n.weight) / float64(sum)
		if n.up && !n.gone && math.Abs(float64(held[n.name])-share) > share/10+1 {
			return false
		}
	}
	return true
}

func (f *fleet) wantEven(when string) {
	f.t.Helper()
	if !f.even() {
		f.t.Errorf("%s: got leases %v, want each node within 10 %% and one of its share", when, f.held())
	}
}

// after does something to the fleet and waits until it is even again. It returns how
// long that took since settled, and checks that each installation was granted once at
// most, and keeps what it has.
func (f *fleet) after(what string, do func(), settled func() bool) {
	f.t.Helper()
	before := len(f.db.log)
	f.gaps, f.opened, f.closed = nil, map[string][]Instant{}, map[string]Instant{}
	do()
	for range 600 {
		if settled() {
			break
		}
		f.pass(100 * time.Millisecond)
	}
	began := f.now
	for f.pass(10 * time.Millisecond); !f.even() && f.now.Sub(began) < time.Minute; {
		f.pass(10 * time.Millisecond)
	}
	took := f.now.Sub(began)
	f.pass(4 * time.Minute)
	f.wantEven("four minutes after " + what)
	granted := map[string]int{}
	for _, g := range f.db.log[before:] {
		if granted[g.id]++; granted[g.id] == 2 {
			f.t.Errorf("after %s: %s was granted twice, want one move at most", what, g.id)
		}
	}
	for _, id := range f.ids {
		if len(f.conns[id]) != 1 {
			f.t.Errorf("after %s: got %d connections of %s, want 1", what, len(f.conns[id]), id)
		}
	}
	f.wantPaced()
	if took > 3*tick {
		f.t.Errorf("after %s: got an even spread after %v, want within three ticks of %v", what, took, tick)
	}
	if len(f.violations) > 0 {
		f.t.Errorf("after %s: %v", what, f.violations)
	}
	slices.Sort(f.gaps)
	median, longest := f.gaps[len(f.gaps)/2], f.gaps[len(f.gaps)-1]
	if what == died {
		if limit := DefaultTiming().TTL + 2*tick; longest > limit {
			f.t.Errorf("after %s: got a gap of %v, want none longer than a TTL, a renewal and a tick of dials: %v", what, longest, limit)
		}
	} else if longest > 2*time.Second || median > 400*time.Millisecond {
		f.t.Errorf("after %s: got gaps of %v, median %v, want less than 2s, and a few tenths as a rule", what, longest, median)
	}
	f.t.Logf("%s: even after %.1f s, %d of %d moved, gaps median %v, longest %v", what, took.Seconds(), len(granted), len(f.ids), median.Round(10*time.Millisecond), longest.Round(10*time.Millisecond))
}

// wantPaced checks that no node dialled faster than its limiter lets it.
func (f *fleet) wantPaced() {
	f.t.Helper()
	for name, at := range f.opened {
		slices.Sort(at)
		for i, j := 0, 0; j < len(at); j++ {
			for at[j].Sub(at[i]) > time.Second {
				i++
			}
			if n := j - i + 1; n > burst+50+15 { // a dial takes up to 300 ms, and fifteen may be late by that
				f.t.Errorf("%s: got %d connections within a second, want no more than the limiter lets through", name, n)
				return
			}
		}
	}
}

// failover takes the store away for as long as one that is failed over is, and checks
// that nothing is moved by it, and no connection ends.
func (f *fleet) failover() {
	f.t.Helper()
	before := len(f.db.log)
	f.closed = map[string]Instant{}
	f.away(true)
	f.pass(15 * time.Second)
	f.away(false)
	f.pass(5 * time.Minute)
	if got := len(f.db.log) - before; got != 0 || len(f.closed) != 0 {
		f.t.Errorf("after a failover of the store: got %d grants and %d connections closed, want none", got, len(f.closed))
	}
	// One that outlasts all trust ends every connection; then everybody gets his own back.
	owner := map[string]string{}
	for _, g := range f.db.log {
		owner[g.id] = g.to
	}
	before = len(f.db.log)
	f.away(true)
	f.pass(time.Minute)
	f.away(false)
	f.pass(5 * time.Minute)
	moved := 0
	for _, g := range f.db.log[before:] {
		if owner[g.id] != g.to {
			moved++
		}
	}
	f.wantEven("after the store was away for a minute")
	if moved > len(f.ids)/20 {
		f.t.Errorf("after the store was away for a minute: got %d of %d moved, want hardly any", moved, len(f.ids))
	}
	f.t.Logf("store away for a minute: %d of %d moved", moved, len(f.ids))
}

func (f *fleet) away(away bool) {
	for _, n := range f.nodes {
		n.deaf = away
	}
}

func TestFairShare(t *testing.T) {
	now := func() bool { return true }
	for _, n := range []int{10, 300, 1000} {
		for _, weights := range [][]int{{1, 1, 1}, {1, 2, 3}, {1, 1, 1, 1}} {
			if n == 1000 && len(weights) == 3 {
				continue // it takes seconds, and shows nothing that 300 do not
			}
			t.Run(fmt.Sprintf("%d installations on nodes of weights %v", n, weights), func(t *testing.T) {
				f := newFleet(t, n, weights...)
				last := len(weights) - 1
				f.after("one joined", func() { f.join(weights[last]) }, now)
				f.after("one left", func() { f.leave(f.nodes[0]) }, now)
				f.after("one was drained", func() { f.drain(f.nodes[1], true); f.nodes[1].gone = true }, now)
				f.after("it was resumed", func() { f.drain(f.nodes[1], false); f.nodes[1].gone = false }, now)
				f.failover()
				f.after(died, func() { f.die(f.nodes[last]) }, func() bool { return len(f.db.sessions) == last })
			})
		}
	}
}
