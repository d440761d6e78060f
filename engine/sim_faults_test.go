package engine

import (
	"fmt"
	"slices"
	"time"
)

func sortedTerms(m map[uint64]*simTerm) []uint64 {
	ids := make([]uint64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (s *simStore) time() time.Time { return time.Unix(0, int64(s.clock())) }

// plan puts the run's faults on the queue, and their end. One seed in four is
// spent where margins are thinnest, and one where answers come latest.
func (w *world) plan() {
	w.after(simFaultsFor, w.heal)
	switch {
	case w.seed%4 == 0 && !w.sole:
		w.planEdge()
	case w.seed%4 == 1:
		w.planChurn()
	default:
		w.planMix()
	}
}

// strike puts one fault of the plan on the queue, unless the run is to do without it.
func (w *world) strike(d time.Duration, f func()) {
	i := w.planned
	w.planned++
	if !w.without[i] {
		w.after(d, f)
	}
}

// planEdge cuts one node off, twice, while it is as late and as slow to close its
// sockets as the margin allows, and the others are as quick to take over: they renew,
// and reap, as soon as its session has expired. Nobody reaps within the first TTL.
func (w *world) planEdge() {
	n := w.nodes[0]
	w.slowKills = true
	for i := range 2 {
		w.strike(time.Duration(15+65*i)*time.Second+w.upTo(5*time.Second), func() {
			w.fault("edge: %s hears late, and is cut off for 50s, late and slow to close", n.name)
			n.tardy = true
			w.after(20*time.Second, func() {
				n.deaf, n.starved, n.lag = true, true, clockSlack-w.upTo(clockSlack/50)
				w.after(time.Second, func() { w.renewAtExpiry(n) })
			})
			w.after(70*time.Second, func() { n.deaf, n.starved, n.tardy = false, false, false })
		})
	}
}

// renewAtExpiry lets the other nodes renew just after n's session has expired.
func (w *world) renewAtExpiry(n *simNode) {
	s := w.db.sessions[n.core.session.id]
	if s == nil {
		return
	}
	for _, other := range w.nodes {
		if other != n && other.up {
			other.after(s.expires.Sub(w.db.clock())+w.upTo(50*time.Millisecond), func() { other.step(inAnomaly{paused}) })
		}
	}
}

// planChurn changes people's minds while the store answers late.
func (w *world) planChurn() {
	for _, n := range w.nodes {
		w.strike(10*time.Second, func() {
			w.fault("churn: the store answers %s late", n.name)
			n.slow = 9 * time.Second
		})
	}
	for range 60 {
		w.strike(10*time.Second+w.upTo(simFaultsFor-20*time.Second), w.churn)
	}
}

func (w *world) planMix() {
	// Most faults hit one node, so that somebody healthy takes over from it.
	victim := w.nodes[w.rand.IntN(len(w.nodes))]
	for range 4 + w.rand.IntN(8) {
		n := victim
		if w.often(20) {
			n = w.nodes[w.rand.IntN(len(w.nodes))]
		}
		at := 5*time.Second + w.upTo(simFaultsFor-5*time.Second)
		w.strike(at, w.someFault(n))
	}
	for range w.rand.IntN(40) {
		w.strike(w.upTo(simFaultsFor), w.churn)
	}
}

func (w *world) someFault(n *simNode) func() {
	d := 2*time.Second + w.upTo(60*time.Second)
	for_ := fmt.Sprintf("%s for %.1fs", n.name, d.Seconds())
	set := func(what string, on *bool) func() {
		return func() {
			w.fault("%s: %s", what, for_)
			*on = true
			if w.often(50) {
				n.starved, n.lag = true, w.mostly(clockSlack)
			}
			w.after(d, func() { *on = false; n.starved = false })
		}
	}
	switch w.rand.IntN(15) {
	case 0:
		return func() {
			if !n.up {
				return
			}
			down := w.upTo(40 * time.Second)
			w.fault("crash: %s, back after %.1fs", n.name, down.Seconds())
			n.crash()
			w.after(down, n.boot)
		}
	case 1, 11, 12:
		return set("requests are lost", &n.deaf)
	case 2:
		return set("answers are lost", &n.mute)
	case 3:
		return set("one answer in three is lost", &n.lossy)
	case 13:
		return set("answers come late", &n.tardy)
	case 4, 9, 10:
		return func() {
			w.fault("slow store: %s", for_)
			n.slow = 9 * time.Second
			w.after(d, func() { n.slow = 0 })
		}
	case 5:
		return func() { w.fault("pause: %s", for_); n.freeze(d, paused) }
	case 6:
		return func() { w.fault("suspend: %s", for_); n.freeze(d, suspended) }
	case 14:
		return func() {
			w.fault("drained: %s", for_)
			w.drain(n, true)
			w.after(d, func() { w.drain(n, false) })
		}
	case 7:
		return func() {
			w.fault("full disk: for %.1fs", d.Seconds())
			w.db.full = true
			w.after(d, func() { w.db.full = false })
		}
	default:
		return func() {
			step := 2*time.Second + w.upTo(time.Minute)
			if w.often(50) {
				step = -step
			}
			w.fault("the store's clock steps by %v", step)
			w.db.step += step
		}
	}
}

// churn is what people do: disable, enable, change a credential.
func (w *world) churn() {
	id := w.db.ids[w.rand.IntN(len(w.db.ids))]
	row := w.db.rows[id]
	switch w.rand.IntN(5) {
	default:
		row.Enabled = !row.Enabled
		if w.often(80) { // thought better of it
			w.after(w.upTo(5*time.Second), func() {
				row.Enabled = !row.Enabled
				w.db.version++
				w.fault("%s changes back: enabled %v", id, row.Enabled)
				w.tellNodes()
			})
		}
	case 1:
		w.db.changed(id, "+")
	case 2:
		w.db.bad[id] = !w.db.bad[id]
		w.db.changed(id, "!")
	}
	w.db.version++
	w.fault("%s changes: enabled %v, fingerprint %s", id, row.Enabled, row.Fingerprint)
	if w.often(50) {
		w.tellNodes()
	}
}

// changed is a changed credential: the store forgets the backoff with it.
func (s *simStore) changed(id, mark string) {
	s.rows[id].Fingerprint += mark
	s.leases[id].fails, s.leases[id].notBefore = 0, 0
}

// drain is what a person says to the store of a node.
func (w *world) drain(n *simNode, drained bool) {
	w.db.drained[n.name] = drained
	for id, s := range w.db.sessions {
		if s.instance == n.name {
			w.db.drain(id, drained)
		}
	}
	w.tellNodes()
}

func (w *world) tellNodes() {
	for _, n := range w.nodes {
		if n.up {
			n.after(w.upTo(10*time.Millisecond), func() { n.step(inWake{}) })
		}
	}
}

func (w *world) heal() {
	w.fault("everything is healed")
	w.db.full, w.slowKills = false, false
	for _, n := range w.nodes {
		n.deaf, n.mute, n.lossy, n.tardy, n.slow, n.starved = false, false, false, false, 0, false
		w.drain(n, false)
	}
}
