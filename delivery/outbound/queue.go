package outbound

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"leasehold/channel"
)

// queue is the part in memory of what one lease has to send. It lives as long as
// something waits, in one goroutine, which owns all of it.
type queue struct {
	m *Mailer
	h *hold

	lanes  map[laneKey]*lane
	known  map[int64]*item // those in lanes
	seen   int64           // all up to this seq are known, or done
	more   bool            // the store has some behind it that had no room
	flying int
	landed chan *item
	look   looking   // what of the store is to be read
	fails  int       // reads that failed in a row
	again  time.Time // when it is read again after that; nothing is begun before
}

// laneKey names what goes in order, one at a time.
type laneKey struct{ installation, conversation string }

// lane is a conversation's messages in the order in which they were posted.
type lane struct {
	items  []*item
	flying *item
}

// item is a message that waits.
type item struct {
	Item
	due, expires time.Time
	retry        bool // due is our own guess: a new connection is tried at once
	done         bool // nothing more becomes of it, or another one's: forget it
}

func newQueue(m *Mailer, h *hold) *queue {
	return &queue{m: m, h: h, lanes: map[laneKey]*lane{}, known: map[int64]*item{}, landed: make(chan *item, m.opts.PerLease)}
}

// run sends what waits until nothing does. It returns when nothing is on its way.
func (q *queue) run(calls, writes context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last channel.Sender
	for {
		sender, leaving := q.news()
		if leaving {
			break
		}
		if sender != nil && sender != last {
			q.forgive()
		}
		last = sender
		if q.more && len(q.known) < refillAt {
			q.look = max(q.look, lookNew)
		}
		if q.look != lookNot && !wall().Before(q.again) {
			q.read(calls)
		}
		next := q.again
		if q.look == lookNot {
			next = q.dispatch(calls, writes, sender, wall())
		}
		if q.rest() {
			return
		}
		timer.Reset(min(nap, max(0, next.Sub(wall()))))
		select {
		case <-calls.Done(): // leaving follows
			q.m.leaveHold(q.h)
		case <-q.h.wake:
		case <-timer.C:
		case it := <-q.landed:
			q.land(it)
		}
	}
	for q.flying > 0 {
		q.land(<-q.landed)
	}
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	q.h.rest()
}

// wall is the time without the monotonic clock, which stands still while the
// machine sleeps.
func wall() time.Time { return time.Now().Round(0) }

// news is what has changed outside.
func (q *queue) news() (s channel.Sender, leaving bool) {
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	q.look, q.h.look = max(q.look, q.h.look), lookNot
	return q.h.sender, q.h.leaving
}

// rest ends the queue when nothing is left to do.
func (q *queue) rest() bool {
	if q.flying > 0 || len(q.known) > 0 || q.more || q.look != lookNot {
		return false
	}
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	if q.h.look != lookNot || q.h.leaving {
		return false
	}
	q.h.rest()
	return true
}

// leaveHold gives a lease up before the engine does: it is another's, or we end.
func (m *Mailer) leaveHold(h *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.leave()
}

// forgive makes due what waited only because the connection before failed.
func (q *queue) forgive() {
	for _, it := range q.known {
		if q.lane(it).flying != it && it.retry {
			it.due, it.retry = time.Time{}, false
		}
	}
}

// read takes what the store has into memory, as far as there is room.
func (q *queue) read(ctx context.Context) {
	after, all, present := q.seen, q.look == lookAll, map[int64]bool{}
	if all {
		after = 0
	}
	for full := false; !full; {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		page, err := q.m.box.Outgoing(limited, q.h.term.Installation, after, pageSize)
		cancel()
		if err != nil {
			q.unread(ctx, err)
			return
		}
		for i := range page {
			seq := page[i].Seq
			if full = q.known[seq] == nil && len(q.known) >= windowSize; full {
				break
			}
			q.add(page[i])
			present[seq], after = true, seq
			q.seen = max(q.seen, seq)
		}
		q.more = full
		if len(page) < pageSize {
			break
		}
	}
	if all && !q.more {
		q.prune(present)
	}
	q.look, q.fails, q.again = lookNot, 0, time.Time{}
}

// unread plans another try, and says so once.
func (q *queue) unread(ctx context.Context, err error) {
	q.fails++
	q.again = wall().Add(storeWait(q.fails))
	if q.fails == 1 && ctx.Err() == nil {
		q.m.log.WarnContext(ctx, "messages unreadable", "installation", q.h.term.Installation, "error", err)
	}
}

func (q *queue) add(i Item) {
	if q.known[i.Seq] != nil {
		return
	}
	now := wall()
	it := &item{Item: i, due: now.Add(i.Due), expires: now.Add(i.Left)}
	q.known[i.Seq] = it
	key := laneKey{i.Installation, i.Conversation}
	l := q.lanes[key]
	if l == nil {
		l = &lane{}
		q.lanes[key] = l
	}
	at, _ := slices.BinarySearchFunc(l.items, i.Seq, func(it *item, seq int64) int { return int(it.Seq - seq) })
	l.items = slices.Insert(l.items, at, it)
}

// prune forgets what the store, listed to its end, has not: somebody else ended it.
func (q *queue) prune(present map[int64]bool) {
	for seq, it := range q.known {
		if !present[seq] && q.lane(it).flying != it {
			q.forget(it)
		}
	}
}

func (q *queue) lane(it *item) *lane { return q.lanes[laneKey{it.Installation, it.Conversation}] }

func (q *queue) forget(it *item) {
	delete(q.known, it.Seq)
	l := q.lane(it)
	l.items = slices.DeleteFunc(l.items, func(o *item) bool { return o == it })
	if len(l.items) == 0 {
		delete(q.lanes, laneKey{it.Installation, it.Conversation})
	}
}

// dispatch sends on their way as many as may go, and returns when to look again.
func (q *queue) dispatch(calls, writes context.Context, sender channel.Sender, now time.Time) (next time.Time) {
	next = now.Add(nap)
	held := 0
	for l := range q.turns() {
		if l.flying != nil {
			continue
		}
		it, over, when := l.choose(sender != nil, now)
		if it == nil {
			next = earlier(next, when)
			continue
		}
		if q.flying == q.m.opts.PerLease {
			continue
		}
		if it.State == Queued && over == "" {
			if wait, _ := q.h.throttle.take(it.Installation, it.Conversation); wait > 0 {
				held++
				next = earlier(next, earlier(when, now.Add(wait)))
				continue
			}
		}
		q.flying++
		l.flying = it
		j := &journey{m: q.m, h: q.h, sender: sender, item: it, over: over}
		go func() { // run waits for it, by landed
			j.make(calls, writes)
			q.landed <- it
		}()
	}
	q.m.mu.Lock()
	q.h.held = held
	q.m.mu.Unlock()
	return next
}

// turns are the lanes: where they share a limit, the one whose message has waited
// longest first.
func (q *queue) turns() iter.Seq[*lane] {
	if !q.h.throttle.fair() {
		return maps.Values(q.lanes)
	}
	return slices.Values(slices.SortedFunc(maps.Values(q.lanes), func(a, b *lane) int { return cmp.Compare(a.items[0].Seq, b.items[0].Seq) }))
}

const (
	tooLate    = "it could not be sent in time"
	superseded = "a newer edit of the same message took its place"
)

// choose is what of the lane may go now: what expired or was superseded, and then why
// it is over; what a holder before us was sending; or its head when somebody can send
// it. when is the time at which that changes, if nothing goes before.
func (l *lane) choose(live bool, now time.Time) (it *item, over string, when time.Time) {
	head := l.items[0]
	when = now.Add(nap)
	newest := map[string]*item{} // edits, by what they are of
	for _, it := range l.items {
		switch {
		case it.State == Sending:
			return it, "", now
		case !now.Before(it.expires):
			return it, tooLate, now
		case it.Edits == "":
		case newest[it.Edits] != nil:
			return newest[it.Edits], superseded, now
		default:
			newest[it.Edits] = it
		}
		when = earlier(when, it.expires)
	}
	switch {
	case !live:
		return nil, "", when
	case head.due.After(now):
		return nil, "", earlier(when, head.due)
	}
	return head, "", when
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// land takes back a message that has been on its way.
func (q *queue) land(it *item) {
	q.flying--
	q.lane(it).flying = nil
	if it.done {
		q.forget(it)
	}
}
