package delivery

import (
	"context"
	"time"

	"leasehold/channel"
)

// dropGrace is how long Drop lets calls end by themselves. An ordinary one takes
// milliseconds, and ending it would only mean that the next holder repeats it;
// a long one must not keep the installation from its next holder.
const dropGrace = 200 * time.Millisecond

// hold is one grant: what this node delivers for one lease. At rest it is a few
// words and no goroutine.
type hold struct {
	d       *Dispatcher
	term    channel.Term
	windows map[*target]*window // nil at rest

	seen    row            // the last row that a pass has seen; all rows come after it
	more    bool           // there may be rows behind it
	stale   bool           // memory is to be thrown away and read again
	queued  bool           // stands in the queue of the loaders, or is with one
	pass    *pass          // what the loaders are at; nil = nothing
	fails   int            // reads of the store that failed in a row
	alarm   alarm          // for reading again
	reread  instant        // when its rows were last read from the first on
	strange map[string]int // rows whose target is not configured

	held []*lane // their heads wait until what may stand before them was read again

	leftovers map[string]int // by target: what is under way in windows that are gone

	busy    map[row]*entry // in flight, or their outcome is not stored yet
	leaving bool           // Drop was called: nothing new goes
	gone    bool           // Drop has returned, or will with its context
	idle    chan struct{}  // closed when leaving and not busy
}

// row names a delivery within a lease. Rows are ordered by seq, then target.
type row struct {
	seq    int64
	target string
}

func (r row) after(o row) bool {
	return r.seq > o.seq || r.seq == o.seq && r.target > o.target
}

// Hold starts the lanes of a lease, from the store.
func (d *Dispatcher) Hold(t channel.Term) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.holds[t.Installation]; old != nil { // against the contract; the newer grant is right
		old.end()
	}
	h := &hold{d: d, term: t, more: true, reread: now()}
	d.holds[t.Installation] = h
	h.request()
}

// Live tells that the term's connection is ready. Deliveries do not go through it.
func (d *Dispatcher) Live(channel.Term, channel.Sender) {}

// Accepted tells that events up to seq are committed.
func (d *Dispatcher) Accepted(t channel.Term, seq int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.holds[t.Installation]
	if h == nil || seq <= h.seen.seq {
		return
	}
	h.more = true
	h.request()
}

// Wake reads again what waits under a lease, after somebody else than its holder
// changed it: a replay, a drop. A lease that is not held is nobody's here.
func (d *Dispatcher) Wake(lease string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.holds[lease]; h != nil {
		h.refresh()
	}
}

// Drop gives the lease up. Nothing new is sent; calls get a short grace, then
// they are broken off, which is no attempt; outcomes that are known are stored.
// When ctx ends first, what is not stored yet is forgotten: the next holder
// repeats it under the same id.
func (d *Dispatcher) Drop(ctx context.Context, t channel.Term) {
	d.mu.Lock()
	h := d.holds[t.Installation]
	if h == nil || h.term.Epoch != t.Epoch {
		d.mu.Unlock()
		return
	}
	h.leave()
	idle := h.idle
	d.ring(d.flush)
	d.mu.Unlock()

	grace := time.NewTimer(dropGrace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.breakOff(h)
	d.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h.end()
}

// leave empties the lanes, so that nothing new goes.
func (h *hold) leave() {
	if h.leaving {
		return
	}
	h.leaving, h.idle = true, make(chan struct{})
	for _, w := range h.windows {
		w.close()
	}
	h.windows = nil
	h.d.alarms.stop(&h.alarm)
	delete(h.d.active, h)
	h.settleIdle()
}

// end makes every further write for the hold impossible.
func (h *hold) end() {
	h.leave()
	if h.gone {
		return
	}
	h.gone = true
	h.d.breakOff(h)
	h.d.unqueue(h)
	h.busy = nil
	if h.d.holds[h.term.Installation] == h {
		delete(h.d.holds, h.term.Installation)
	}
	if len(h.d.holds) == 0 {
		h.d.endStreams()
	}
	h.settleIdle()
}

// settleIdle tells Drop once nothing is in flight and nothing waits for the store.
func (h *hold) settleIdle() {
	if !h.leaving || len(h.busy) > 0 {
		return
	}
	select {
	case <-h.idle:
	default:
		close(h.idle)
	}
}

// work marks e as busy: in flight, or with an outcome that is not stored.
func (h *hold) work(r row, e *entry) {
	if h.busy == nil {
		h.busy = map[row]*entry{}
	}
	h.busy[r] = e
}

// rest ends that. During a pass that rereads what was in memory, the page on its
// way may still show the row as it was before.
func (h *hold) rest(r row) {
	if e := h.busy[r]; e != nil && e.lane != nil && e.lane.window.gone {
		h.leftover(r.target, -1)
	}
	delete(h.busy, r)
	if len(h.busy) == 0 {
		h.busy = nil
	}
	if h.pass != nil && h.pass.settled != nil {
		h.pass.settled[r] = struct{}{}
	}
	h.settleIdle()
}

// window returns the window of a target, made if there is none.
func (h *hold) window(t *target) *window {
	w := h.windows[t]
	if w == nil {
		w = &window{hold: h, target: t, lanes: map[laneKey]*lane{}}
		if h.windows == nil {
			h.windows = map[*target]*window{}
		}
		h.windows[t] = w
		h.d.active[h] = struct{}{}
		h.d.ring(h.d.clock) // it sweeps from now on
	}
	return w
}

// tidy forgets windows of which nothing is left; without any the hold is at rest.
func (h *hold) tidy(w *window) {
	if h.windows[w.target] != w || !w.empty() {
		return
	}
	w.close()
	delete(h.windows, w.target)
	if len(h.windows) == 0 {
		h.windows = nil
		delete(h.d.active, h)
	}
}

// missing reports whether rows before seq were thrown away and are not read again yet.
// What was busy meanwhile has kept its place, and must not go before them.
func (h *hold) missing(seq int64) bool {
	return seq > h.seen.seq && (h.stale || h.pass != nil && h.pass.settled != nil)
}

// wait has a lane looked at again after the next page.
func (h *hold) wait(l *lane) {
	if !l.held {
		l.held = true
		h.held = append(h.held, l)
	}
}

// release looks at the lanes that waited for a page.
func (h *hold) release(now instant) {
	held := h.held
	h.held = nil
	for _, l := range held {
		if l.held = false; !l.window.gone {
			l.check(now)
		}
	}
}

// clear throws away what is in memory and not busy, before it is read again.
func (h *hold) clear() {
	h.seen, h.more, h.strange, h.reread = row{}, true, nil, now()
	for _, w := range h.windows {
		w.clear()
		h.tidy(w)
	}
}
