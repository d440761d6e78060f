package delivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	// batchBytes is how much one batch carries, in bytes, unless its first event alone
	// is larger: what servers take by default (nginx: 1 MB).
	batchBytes = 1 << 20
	// batchPause is how long no batch is made for a target that did not take one: its
	// events go one by one, so that one that it does not want keeps nobody else waiting.
	batchPause = time.Minute
)

// gather lets others ride with p in one call: the next of its lane, then those of
// other lanes of its window that can go. Each lane keeps its order, since a batch
// is taken as a whole, in its order, or not at all. What has failed before, or is
// sent again, goes by itself: it needs an answer of its own.
func (d *Dispatcher) gather(p *pick, now instant) {
	t, w := p.target, p.lane.window
	if _, ok := p.setup.sink.(Batcher); !ok || now < t.single || !p.entry.rides() {
		return
	}
	room := min(t.Batch, max(1, batchBytes/d.largest)) - 1
	take := func(l *lane) {
		for room > 0 && len(l.entries) > 0 && l.entries[0].rides() && l.free(l.entries[0], now) && !w.dies(l.entries[0], now) {
			p.with = append(p.with, d.fly(&pick{lane: l, rides: true}, 0))
			room--
		}
	}
	take(p.lane)
	for room > 0 && w.ready.len() > 0 {
		l := w.ready.pop()
		l.ready = false
		switch {
		case !l.can(now) || l.old(now):
			l.check(now)
			continue
		case !l.entries[0].rides():
			l.ready = true
			w.ready.unpop(l)
			return
		}
		take(l)
	}
}

// rides reports whether an entry may be one of a batch.
func (e *entry) rides() bool { return e.attempts == 0 && !e.alone && !e.replay && !e.marking }

// dies reports whether an entry is too old to be sent.
func (w *window) dies(e *entry, now instant) bool {
	x := w.expiry(e, now)
	return x != 0 && x <= now
}

// crew are the deliveries of one call in order of seq.
func (p *pick) crew() []*pick {
	all := append([]*pick{p}, p.with...)
	slices.SortStableFunc(all, func(a, b *pick) int { return cmp.Compare(a.entry.seq, b.entry.seq) })
	return all
}

// callBatch makes one attempt for several deliveries.
func (d *Dispatcher) callBatch(ctx context.Context, lead *pick) *pick {
	started := time.Now()
	all := lead.crew()
	results := make([]Result, len(all))
	var deliveries []Delivery
	size := 0
	for i, p := range all {
		v, r := d.sealed(p)
		switch {
		case r.Outcome == fatal:
			results[i] = r
		case len(deliveries) > 0 && size+len(v.Envelope) > batchBytes:
			size += batchBytes // and nothing behind it: it may be of the same lane
			results[i] = Result{Outcome: Aborted}
		default:
			size += len(v.Envelope)
			v.Attempt = 1
			deliveries = append(deliveries, v)
		}
	}
	limited, cancel := context.WithTimeout(ctx, lead.setup.Timeout)
	defer cancel()
	r := Result{Outcome: Aborted}
	if d.board(all, cancel) && len(deliveries) > 0 {
		r = d.attempt(limited, lead, func(sink Sink) Result {
			if b, ok := sink.(Batcher); ok && len(deliveries) > 1 {
				return b.DeliverBatch(limited, deliveries)
			}
			return sink.Deliver(limited, deliveries[0])
		})
	}
	d.settleBatch(ctx, lead, all, results, r, len(deliveries), time.Since(started))
	return nil
}

// board notes how the call of all is broken off; false: it was, before it began.
func (d *Dispatcher) board(all []*pick, cancel context.CancelFunc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range all {
		p.cancel = cancel
	}
	return !slices.ContainsFunc(all, func(p *pick) bool { return p.broken })
}

// settleBatch acts on the result of a batch. own has the results of those that did
// not go with it; the zero one stands for r. A batch that the target answered and
// did not take is nobody's attempt: each of it goes by itself from then on, and is
// judged by that.
func (d *Dispatcher) settleBatch(ctx context.Context, lead *pick, all []*pick, own []Result, r Result, sent int, took time.Duration) {
	d.mu.Lock()
	now := now()
	for _, p := range all {
		d.land(p)
	}
	var says []func()
	counts := false
	if refused := r.Outcome == Refused || r.Outcome == Broken || r.Outcome == Slow; refused && sent > 1 && !lead.setup.retired {
		says = append(says, d.disband(ctx, lead.target, all, r, sent, now))
		r = Result{Outcome: Aborted}
	} else if sent > 0 {
		says = append(says, d.refuseBatch(ctx, lead, r))
		var say func()
		r, counts, say = d.verdict(ctx, lead, r, now)
		says = append(says, say)
	}
	for _, p := range all {
		p.ashore()
	}
	for i, p := range all {
		result, counted := own[i], false
		if result == (Result{}) {
			result, counted = r, counts
		}
		if !p.hold.gone {
			says = append(says, d.decide(ctx, p, result, counted, took, now))
		}
	}
	d.ring(d.dispatch)
	d.mu.Unlock()
	for _, say := range says {
		if say != nil {
			say()
		}
	}
}

// disband lets the events of a batch go by themselves.
func (d *Dispatcher) disband(ctx context.Context, t *target, all []*pick, r Result, sent int, now instant) func() {
	r.Reason, r.NextStep = fmt.Sprintf("a batch of %d: %s", sent, r.Reason), stepBatch
	t.note(r, now)
	t.single = now.add(batchPause)
	for _, p := range all {
		p.entry.alone = true
	}
	return func() {
		d.log.LogAttrs(ctx, slog.LevelInfo, "batch not taken", slog.String("target", t.Name), slog.Int("events", sent), slog.String("error", r.Reason))
	}
}
