package delivery

import (
	"context"
	"log/slog"
	"time"
)

const (
	// loaders is how many reads of backlogs run at the same time.
	loaders = 2
	// pageSize is how many rows one read returns.
	pageSize = 1024
	// readTimeout bounds one read of the store.
	readTimeout = 10 * time.Second
	// readRetryMax is the longest wait after reads that failed.
	readRetryMax = 30 * time.Second
)

// pass is one reading of a lease's rows in order: forward from what was seen, or
// from the first row that a lane lacks.
type pass struct {
	id      uint64
	start   int64            // what was cut at or behind this seq can be filled
	at      row              // read up to here
	more    bool             // the flag of the hold that it answers
	settled map[row]struct{} // what ended meanwhile; only in a pass that rereads what was in memory
}

// request has the hold's rows read, as soon as a loader is free.
func (h *hold) request() {
	if h.queued || h.leaving {
		return
	}
	h.queued = true
	h.d.loads.push(h)
	h.d.ring(h.d.load)
}

// refresh has everything read again.
func (h *hold) refresh() {
	h.stale = true
	h.request()
}

// refill has more read if l, or its window, runs short after an entry went.
func (h *hold) refill(l *lane) {
	w := l.window
	if l.cut != 0 && len(l.entries) <= refillAt || w.cut != 0 && w.n <= w.size()/2 {
		h.request()
	}
}

// plan returns the pass to go on with; nil: there is nothing to read.
func (h *hold) plan() *pass {
	if h.stale {
		h.stale = false
		h.clear()
		h.d.passes++
		h.pass = &pass{id: h.d.passes, settled: map[row]struct{}{}}
	}
	if h.pass == nil {
		h.pass = h.next()
	}
	if h.pass != nil {
		h.pass.more, h.more = h.pass.more || h.more, false
	}
	return h.pass
}

func (h *hold) next() *pass {
	h.d.passes++
	if h.more {
		return &pass{id: h.d.passes, start: h.seen.seq + 1, at: h.seen}
	}
	start, found := int64(0), false
	for _, w := range h.windows {
		if from, ok := w.short(); ok && (!found || from < start) {
			start, found = from, true
		}
	}
	if !found {
		return nil
	}
	return &pass{id: h.d.passes, start: start, at: row{seq: start}}
}

// runLoads reads backlogs until ctx ends.
func (d *Dispatcher) runLoads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.load:
		}
		for ctx.Err() == nil {
			d.mu.Lock()
			if d.loads.len() == 0 {
				d.mu.Unlock()
				break
			}
			h := d.loads.pop()
			if d.loads.len() > 0 {
				d.ring(d.load) // for another loader
			}
			p := h.begin()
			d.mu.Unlock()
			if p != nil {
				d.read(ctx, h, p)
			}
		}
	}
}

// begin plans the next page of a hold that was taken from the queue.
func (h *hold) begin() *pass {
	if h.leaving {
		h.queued = false
		return nil
	}
	p := h.plan()
	h.queued = p != nil
	return p
}

// read reads one page and puts the hold back in the queue if there is more to do.
func (d *Dispatcher) read(ctx context.Context, h *hold, p *pass) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	items, err := d.outbox.Pending(limited, h.term.Installation, p.at.seq, p.at.target, d.limits.page)
	cancel()
	if err != nil && ctx.Err() != nil {
		return
	}
	var say func()
	d.mu.Lock()
	h.queued = false
	switch {
	case h.leaving:
	case err != nil:
		say = h.unread(ctx, err)
	default:
		h.fails = 0
		if !h.stale {
			say = h.admit(ctx, p, items)
		}
		h.request() // the next page, the next pass, or nothing
	}
	d.mu.Unlock()
	if say != nil {
		say()
	}
}

// unread plans another try after a read that failed, and says so once.
func (h *hold) unread(ctx context.Context, err error) func() {
	h.fails++
	wait := min(readRetryMax, time.Second<<min(h.fails-1, 10))
	h.queued = true // until the alarm
	h.d.alarms.set(&h.alarm, now().add(wait), func() {
		h.queued = false
		h.request()
	})
	if h.fails > 1 {
		return nil
	}
	return func() {
		h.d.log.LogAttrs(ctx, slog.LevelWarn, "backlog unreadable", slog.String("installation", h.term.Installation), slog.Any("error", err))
	}
}

// admit takes a page into memory. It returns what to log, after the lock.
func (h *hold) admit(ctx context.Context, p *pass, items []Item) func() {
	now, fresh := now(), false
	var news []string
	for i := range items {
		r := row{items[i].Seq, items[i].Target}
		fresh = r.after(h.seen)
		p.at = r
		if fresh {
			h.seen = r
		}
		e := h.busy[r]
		if e != nil && e.lane != nil {
			continue // it has its place
		}
		if _, ok := p.settled[r]; ok {
			continue
		}
		t := h.d.targets[r.target]
		if t == nil {
			if fresh && h.stray(r.target) {
				news = append(news, r.target)
			}
			continue
		}
		if h.leftovers[r.target] > 0 {
			continue // all of them are read again when those are done
		}
		if w := h.windows[t]; w != nil || fresh {
			h.window(t).offer(p, &items[i], e, fresh, now)
		}
	}
	if len(items) < h.d.limits.page {
		for _, w := range h.windows {
			w.reached(p)
		}
		h.pass = nil
	} else if !fresh && !h.hopes(p) {
		h.more = h.more || p.more
		h.pass = nil
	}
	h.release(now)
	for _, w := range h.windows {
		h.tidy(w)
	}
	if news == nil {
		return nil
	}
	return func() {
		for _, name := range news {
			h.d.log.LogAttrs(ctx, slog.LevelWarn, "target not configured", slog.String("target", name), slog.String("installation", h.term.Installation),
				slog.String("next_step", "its deliveries are kept; add the target, or drop them with leasehold deliveries drop"))
		}
	}
}

func (h *hold) hopes(p *pass) bool {
	for _, w := range h.windows {
		if w.hopes(p) {
			return true
		}
	}
	return false
}

// stray counts a row whose target is not configured; true: the first of its target.
func (h *hold) stray(target string) bool {
	if h.strange == nil {
		h.strange = map[string]int{}
	}
	h.strange[target]++
	if h.d.strange[target] {
		return false
	}
	h.d.strange[target] = true
	return true
}
