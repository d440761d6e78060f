package delivery

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

const (
	// aheadCount is how many events of a lane are read together with its head, and
	// aheadBytes how many bytes of such events wait in memory, over all lanes.
	aheadCount = 16
	aheadBytes = 8 << 20
	// largestGuess is how large an event is taken to be before one was read, in bytes.
	largestGuess = 64 << 10
	// fetchMax is how many deliveries are picked for one read of the store.
	fetchMax = 64
)

// pick is a delivery on its way.
type pick struct {
	hold   *hold
	target *target
	setup  *setup // that it is called with
	node   Node   // as its envelope says
	lane   *lane
	entry  *entry
	event  *Event // nil: the store does not have it
	probe  bool
	second bool    // a probe with what stands behind the lane's head
	with   []*pick // the others of its batch
	rides  bool    // goes with the call of another
	tooOld string  // it dies of age, with this reason, and is fetched only to say of what event

	replies []Reply // what its target answered
	fault   string  // why that is not taken; "" = it is, or there is nothing

	broken bool               // Drop broke it off
	cancel context.CancelFunc // nil before the call
}

// runDispatch sends what can go until ctx ends.
func (d *Dispatcher) runDispatch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.dispatch:
		}
		for ctx.Err() == nil {
			d.mu.Lock()
			picks := d.pick(now())
			missing := d.missing(picks)
			d.mu.Unlock()
			if len(picks) == 0 {
				break
			}
			if len(missing) > 0 && !d.fetch(ctx, picks, missing) {
				break
			}
			for _, p := range picks {
				d.calls.Go(func() {
					for p := p; p != nil; {
						p = d.call(ctx, p)
					}
				})
			}
		}
	}
}

// pick takes what may go now out of its lanes, the targets in turn.
func (d *Dispatcher) pick(now instant) []*pick {
	if !d.sends(now) {
		return nil
	}
	var picks []*pick
	for d.expired.len() > 0 && len(picks) < fetchMax {
		l := d.expired.pop()
		l.dying = false
		if l.old(now) {
			picks = append(picks, d.fly(&pick{lane: l, tooOld: l.tooOld()}, 0))
			continue
		}
		l.check(now)
		l.window.hold.tidy(l.window)
	}
	for idle, n := 0, len(picks); idle < len(d.order) && n < fetchMax; d.turn++ {
		if p := d.choose(d.order[d.turn%len(d.order)], now); p != nil {
			picks, idle = append(picks, p), 0
			n += 1 + len(p.with)
		} else {
			idle++
		}
	}
	return picks
}

// choose takes the next delivery of a target; nil: there is none, or no room, or
// the target is not to be called now.
func (d *Dispatcher) choose(t *target, now instant) *pick {
	ok, probe := t.admits(now)
	if !ok || !t.room(d) {
		return nil
	}
	if l := t.second; l != nil && probe {
		t.second = nil
		if !l.window.hold.leaving && l.flying == nil && len(l.entries) > 1 && l.free(l.entries[1], now) {
			t.probing = true
			return d.fly(&pick{lane: l, probe: true, second: true}, 1)
		}
	}
	l := t.next(now)
	if l == nil {
		return nil
	}
	t.probing = probe
	p := d.fly(&pick{lane: l, probe: probe}, 0)
	if !probe && t.Batch > 1 {
		d.gather(p, now)
	}
	return p
}

// next takes the next lane that can go out of the queues: the windows in turn,
// and in each its lanes in turn.
func (t *target) next(now instant) *lane {
	for t.ready.len() > 0 {
		w := t.ready.pop()
		w.waiting = false
		for w.ready.len() > 0 {
			l := w.ready.pop()
			l.ready = false
			if !l.can(now) || l.old(now) {
				l.check(now)
				continue
			}
			if w.ready.len() > 0 && !w.waiting {
				w.waiting = true
				t.ready.push(w)
			}
			return l
		}
		w.hold.tidy(w)
	}
	return nil
}

// follow picks the delivery that the goroutine of a finished call of t goes on
// with; nil: none, or one whose event is to be read first, together with others.
func (d *Dispatcher) follow(t *target, now instant) *pick {
	if !d.sends(now) || t.state != Closed || !t.room(d) || len(d.order) > 1 && d.inFlight >= d.total/2 {
		return nil // the last: another target may want the place
	}
	if t.Batch > 1 {
		return nil // it may go with others
	}
	l := t.next(now)
	if l == nil {
		return nil
	}
	if l.entries[0].event == nil {
		t.putBack(l)
		return nil
	}
	return d.fly(&pick{lane: l}, 0)
}

// sends reports whether anything may be sent, as far as the store is concerned.
func (d *Dispatcher) sends(now instant) bool {
	return d.sick == nil && d.unmarked < unmarkedMax && now >= d.resume
}

// room reports whether one more call of the target may run.
func (t *target) room(d *Dispatcher) bool {
	if s, ok := t.sink.(*pullSink); ok {
		return t.inFlight < t.Concurrency && s.wants(t.inFlight)
	}
	return t.inFlight < t.Concurrency && (d.inFlight < d.total || t.inFlight == 0)
}

// putBack undoes next.
func (t *target) putBack(l *lane) {
	w := l.window
	l.ready = true
	w.ready.unpop(l)
	if !w.waiting {
		w.waiting = true
		t.ready.unpop(w)
	}
}

// fly takes the lane's entry at index i into flight.
func (d *Dispatcher) fly(p *pick, i int) *pick {
	l := p.lane
	p.hold, p.target = l.window.hold, l.window.target
	p.setup, p.node = p.target.setup, d.node
	p.entry = l.take(i)
	p.event = p.entry.event
	d.forget(p.entry)
	if l.flying == nil {
		l.flying = p.entry
	}
	p.entry.pick, p.entry.flying = p, true
	p.hold.work(p.row(), p.entry)
	if !p.rides {
		p.target.inFlight++
		p.setup.calls++
		d.inFlight += p.setup.weight()
	}
	d.alarms.stop(&l.alarm)
	p.hold.refill(l)
	return p
}

// crews are picks with those that ride with them.
func crews(picks []*pick) []*pick {
	all := slices.Clip(picks)
	for _, p := range picks {
		all = append(all, p.with...)
	}
	return all
}

// ashore tells the lane that the flight is over.
func (p *pick) ashore() { p.lane.flying, p.entry.flying = nil, false }

func (p *pick) row() row { return row{p.entry.seq, p.target.Name} }

// missing lists the events to read for picks: theirs, and some of what stands
// behind them in their lanes.
func (d *Dispatcher) missing(picks []*pick) []int64 {
	var seqs []int64
	room := (aheadBytes - d.ahead) / d.largest
	for _, p := range crews(picks) {
		if p.event != nil {
			continue
		}
		seqs = append(seqs, p.entry.seq)
		if p.tooOld != "" || p.probe || room <= 0 {
			continue
		}
		for _, e := range p.lane.entries[:min(aheadCount-1, room, len(p.lane.entries))] {
			if e.event == nil {
				seqs = append(seqs, e.seq)
				room--
			}
		}
	}
	slices.Sort(seqs)
	return slices.Compact(seqs)
}

// fetch reads events for picks. When the store fails they go back to their
// lanes, and nothing is sent for a while.
func (d *Dispatcher) fetch(ctx context.Context, picks []*pick, seqs []int64) bool {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	events, err := d.outbox.Payloads(limited, seqs)
	cancel()
	bySeq, largest := make(map[int64]*Event, len(events)), 1<<10
	for i := range events {
		bySeq[events[i].Seq] = &events[i]
		largest = max(largest, len(events[i].Body))
	}
	d.mu.Lock()
	d.largest = largest
	failed := 0
	if err != nil && ctx.Err() == nil {
		d.unread++
		failed = d.unread
		d.resume = now().add(min(readRetryMax, time.Second<<min(failed-1, 10)))
		d.alarms.set(&d.reread, d.resume, func() { d.ring(d.dispatch) })
	} else if err == nil {
		d.unread = 0
	}
	everybody := crews(picks)
	for _, p := range everybody {
		if err != nil {
			d.land(p)
			p.ashore()
		}
	}
	for _, p := range everybody {
		if err != nil {
			d.putBack(p)
			continue
		}
		if p.event == nil {
			p.event = bySeq[p.entry.seq]
			d.readAhead(p.lane, bySeq)
		}
	}
	d.mu.Unlock()
	if failed == 1 {
		d.log.LogAttrs(ctx, slog.LevelWarn, "events unreadable", slog.Int("events", len(seqs)), slog.Any("error", err))
	}
	return err == nil
}

func (d *Dispatcher) readAhead(l *lane, events map[int64]*Event) {
	for _, e := range l.entries[:min(aheadCount, len(l.entries))] {
		if ev := events[e.seq]; ev != nil && e.event == nil {
			e.event = ev
			d.ahead += len(ev.Body)
		}
	}
}

// forget lets go of an event that was read ahead.
func (d *Dispatcher) forget(e *entry) {
	if e.event != nil {
		d.ahead -= len(e.event.Body)
		e.event = nil
	}
}
