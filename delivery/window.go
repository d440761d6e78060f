package delivery

import (
	"cmp"
	"container/heap"
	"slices"
)

const (
	// windowSize is how many entries of one lease and target are kept in memory, and
	// totalSize how many of all: about 200 bytes each.
	windowSize = 4096
	totalSize  = 65536
	// windowFloor is what a window may hold when totalSize is reached: a target that
	// is down for everybody must not keep the others' deliveries out.
	windowFloor = 32
	// parkedSize is how many entries that wait beside their lanes a window keeps.
	parkedSize = 512
	// refillAt is how short a lane that continues in the store may get before more
	// of it is read.
	refillAt = 128
)

// window is the part in memory of what one lease has for one target: of each
// lane a beginning. A cut says where the part ends: rows from there on are in
// the store only. A lane has a cut when it is long, the window when there are
// many lanes. So a conversation that is stuck with a long backlog takes no
// memory from the others and does not hide them.
type window struct {
	hold   *hold
	target *target
	lanes  map[laneKey]*lane
	n      int // entries in lanes

	cut     int64  // as for a lane, and for all of them; 0 = none
	refused uint64 // the pass that had no room for a new lane

	parked  parkedHeap // failed, and passed by their lanes; the next due first
	lost    instant    // when the first of those is due that had no room; 0 = there is none
	alarm   alarm      // for the first of them
	ready   fifo[*lane]
	waiting bool // stands in its target's queue
	gone    bool // its target is not configured any more: nothing waits here
}

func (w *window) count(n int) {
	w.n += n
	w.hold.d.items += n
}

func (w *window) size() int {
	if w.hold.d.items >= w.hold.d.limits.total {
		return min(w.hold.d.limits.window, windowFloor)
	}
	return w.hold.d.limits.window
}

// share is the part of a full window that each of its lanes may keep; 0 = there
// are too many lanes.
func (w *window) share() int { return w.size() / (2 * max(1, len(w.lanes))) }

func (w *window) lane(k laneKey) *lane {
	l := w.lanes[k]
	if l == nil {
		l = &lane{window: w, key: k}
		w.lanes[k] = l
	}
	return l
}

// offer takes the next row of a pass into memory if it is not there and there is
// room. fresh: no pass has seen the row before. e is the row's entry if it is
// busy without having a place; the lane must not go on past it meanwhile.
func (w *window) offer(p *pass, i *Item, e *entry, fresh bool, now instant) {
	if w.cut != 0 && (w.refused == p.id || w.cut < p.start) {
		return // something before it is missing
	}
	key := keyOf(i, w.target.Order)
	l := w.lanes[key]
	missing := fresh || w.cut != 0 && i.Seq >= w.cut
	if l != nil && l.cut != 0 {
		if l.refused == p.id || l.cut < p.start {
			w.seen(i.Seq)
			return
		}
		missing = missing || i.Seq >= l.cut
	}
	if !missing {
		return
	}
	if e == nil {
		e = &entry{seq: i.Seq, webhookID: i.WebhookID, attempts: i.Attempts, due: dueOf(i, now), accepted: at(i.AcceptedAt), replay: i.Replay}
	}
	switch {
	case w.target.passes(e) && e.due > now:
		e.lane = &lane{window: w, key: key}
		w.park(e)
	case !w.room(l, p):
		if l != nil {
			l.cut, l.refused = i.Seq, p.id
			w.seen(i.Seq)
			return
		}
		w.cut, w.refused = i.Seq, p.id
		return
	default:
		l = w.lane(key)
		l.insert(e)
		l.check(now)
	}
	if l != nil && l.cut != 0 {
		l.cut = max(l.cut, i.Seq+1)
	}
	w.seen(i.Seq)
}

// seen moves the window's cut behind a row that it does not hide any more.
func (w *window) seen(seq int64) {
	if w.cut != 0 {
		w.cut = max(w.cut, seq+1)
	}
}

// room makes room for one more entry of l, if it can be made; l is nil for a new
// lane. A full window takes it from lanes that have more than their share.
func (w *window) room(l *lane, p *pass) bool {
	if w.n < w.size() {
		return true
	}
	share := w.share()
	if share == 0 || l != nil && len(l.entries) >= share {
		return false
	}
	for _, other := range w.lanes {
		other.trim(share, p.id)
	}
	return w.n < w.size()
}

// short reports whether what is in memory runs out while the store has more, and
// there is room to read it; from is where.
func (w *window) short() (from int64, ok bool) {
	if w.cut != 0 && w.n <= w.size()/2 {
		from, ok = w.cut, true
	}
	for _, l := range w.lanes {
		if l.short() && (!ok || l.cut < from) {
			from, ok = l.cut, true
		}
	}
	return from, ok
}

// hopes reports whether the pass can still bring what is short.
func (w *window) hopes(p *pass) bool {
	if w.cut != 0 && (w.cut < p.start || w.refused == p.id) {
		return false
	}
	if w.cut != 0 && w.n <= w.size()/2 {
		return true
	}
	for _, l := range w.lanes {
		if l.cut >= p.start && l.refused != p.id && l.short() {
			return true
		}
	}
	return false
}

// reached ends a pass that saw the last row: what it was not refused is all there is.
func (w *window) reached(p *pass) {
	if w.cut >= p.start && w.refused != p.id {
		w.cut = 0
	}
	for _, l := range w.lanes {
		if l.cut >= p.start && l.refused != p.id {
			l.cut = 0
			l.leave()
		}
	}
}

// park puts a failed entry beside its lane, which goes on without it. It comes
// back when it is due, or to die.
func (w *window) park(e *entry) {
	if x := w.expiry(e, now()); x != 0 {
		e.due = min(e.due, x)
	}
	heap.Push(&w.parked, e)
	w.hold.d.items++
	if len(w.parked) > parkedSize {
		w.release()
	}
	w.wake()
}

// release forgets the entry that is due last among those that the store knows.
func (w *window) release() {
	last := -1
	for i, e := range w.parked {
		if !e.marking && (last < 0 || e.due > w.parked[last].due) {
			last = i
		}
	}
	if last < 0 {
		return
	}
	e := w.parked[last]
	heap.Remove(&w.parked, last)
	w.hold.d.items--
	w.hold.d.forget(e)
	if w.lost == 0 || e.due < w.lost {
		w.lost = e.due
	}
}

// wake sets the alarm for the first parked entry.
func (w *window) wake() {
	next := w.lost
	if len(w.parked) > 0 && (next == 0 || w.parked[0].due < next) {
		next = w.parked[0].due
	}
	if next == 0 {
		w.hold.d.alarms.stop(&w.alarm)
		return
	}
	w.hold.d.alarms.set(&w.alarm, next, func() { w.unpark(now()) })
}

// unpark brings entries that are due back into their lanes, at their place.
func (w *window) unpark(now instant) {
	for len(w.parked) > 0 && w.parked[0].due <= now {
		e := heap.Pop(&w.parked).(*entry)
		w.hold.d.items--
		l := w.lane(e.lane.key)
		l.insert(e)
		l.check(now)
	}
	if w.lost != 0 && w.lost <= now {
		w.lost = 0
		w.hold.refresh()
	}
	w.wake()
}

// find returns a waiting entry; nil: it is not in memory.
func (w *window) find(seq int64) *entry {
	for _, l := range w.lanes {
		if i, ok := slices.BinarySearchFunc(l.entries, seq, func(e *entry, seq int64) int { return cmp.Compare(e.seq, seq) }); ok {
			return l.entries[i]
		}
	}
	if i := slices.IndexFunc(w.parked, func(e *entry) bool { return e.seq == seq }); i >= 0 {
		return w.parked[i]
	}
	return nil
}

// recall brings an entry back into its lane before it is due, if it is parked.
func (w *window) recall(e *entry, now instant) {
	i := slices.Index(w.parked, e)
	if i < 0 {
		return
	}
	heap.Remove(&w.parked, i)
	w.hold.d.items--
	w.wake()
	l := w.lane(e.lane.key)
	l.insert(e)
	l.check(now)
}

// discard forgets a waiting entry, wherever it waits.
func (w *window) discard(e *entry) {
	e.lane.drop(e)
	if i := slices.Index(w.parked, e); i >= 0 {
		heap.Remove(&w.parked, i)
		w.hold.d.items--
		w.wake()
	}
	w.hold.d.forget(e)
}

// beyond reports whether a row of l is one that will be read from the store.
func (w *window) beyond(l *lane, seq int64) bool {
	return w.cut != 0 && seq >= w.cut || l.cut != 0 && seq >= l.cut
}

// empty reports whether there is nothing left to remember.
func (w *window) empty() bool {
	return len(w.lanes) == 0 && len(w.parked) == 0 && w.cut == 0 && w.lost == 0
}

// enqueue puts a lane whose head can go behind the others.
func (w *window) enqueue(l *lane) {
	if l.ready {
		return
	}
	l.ready = true
	w.ready.push(l)
	if !w.waiting {
		w.waiting = true
		w.target.ready.push(w)
	}
	w.hold.d.ring(w.hold.d.dispatch)
}

// clear forgets what the store knows. What is in flight, and outcomes that are
// not stored yet, stay.
func (w *window) clear() {
	w.cut, w.lost = 0, 0
	for _, l := range w.lanes {
		kept := l.entries[:0:0]
		for _, e := range l.entries {
			if e.marking {
				kept = append(kept, e)
			} else {
				w.hold.d.forget(e)
			}
		}
		w.count(len(kept) - len(l.entries))
		l.entries, l.cut = kept, 0
		l.check(0)
	}
	var kept parkedHeap
	for _, e := range w.parked {
		if e.marking {
			kept = append(kept, e)
		} else {
			w.hold.d.forget(e)
		}
	}
	w.hold.d.items += len(kept) - len(w.parked)
	w.parked = kept
	heap.Init(&w.parked)
	w.wake()
}

// close takes the window out of everything that would come back to it.
func (w *window) close() {
	d := w.hold.d
	for _, l := range w.lanes {
		d.alarms.stop(&l.alarm)
		for _, e := range l.entries {
			d.forget(e)
		}
		l.entries = nil
	}
	for _, e := range w.parked {
		d.forget(e)
	}
	w.hold.d.items -= w.n + len(w.parked)
	w.n, w.parked, w.lost = 0, nil, 0
	d.alarms.stop(&w.alarm)
	if w.waiting {
		w.waiting = false
		w.target.ready.remove(w)
	}
}

type parkedHeap []*entry

func (h parkedHeap) Len() int           { return len(h) }
func (h parkedHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h parkedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *parkedHeap) Push(x any)        { *h = append(*h, x.(*entry)) }

func (h *parkedHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
