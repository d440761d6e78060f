package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// fatal is the outcome of a delivery that dies without an attempt. It is no
// sink's to give.
const fatal Outcome = -1

// settle acts on the result of a dispatch: what it says of the target, what
// becomes of the delivery, who goes next. It returns what the goroutine of the
// call goes on with, if anything.
func (d *Dispatcher) settle(ctx context.Context, p *pick, r Result, took time.Duration) *pick {
	d.mu.Lock()
	d.land(p)
	now := now()
	var says []func()
	counts := false
	if r.Outcome != fatal {
		var say func()
		r, counts, say = d.verdict(ctx, p, r, now)
		says = append(says, say)
		if p.setup.Batch > 1 {
			says = append(says, d.refuseBatch(ctx, p, r))
		}
	}
	p.ashore()
	if !p.hold.gone {
		says = append(says, d.decide(ctx, p, r, counts, took, now))
	}
	var next *pick
	if ctx.Err() == nil {
		next = d.follow(p.target, now)
	}
	if next == nil {
		d.ring(d.dispatch)
	}
	d.mu.Unlock()
	for _, say := range says {
		if say != nil {
			say()
		}
	}
	return next
}

// verdict is what a result counts for, now that it is there.
func (d *Dispatcher) verdict(ctx context.Context, p *pick, r Result, now instant) (counted Result, counts bool, say func()) {
	if !p.setup.retired {
		counts, say = d.judge(ctx, p, r, now)
		return r, counts, say
	}
	if r.Outcome == Taken { // it says nothing of what the target is now
		return r, true, nil
	}
	return Result{Outcome: Aborted}, false, nil
}

// land takes a dispatch out of the counts. Its lane is told after the target was
// judged.
func (d *Dispatcher) land(p *pick) {
	p.entry.pick = nil
	if p.rides {
		return
	}
	p.target.inFlight--
	d.inFlight -= p.setup.weight()
	d.ended(p.setup)
	if p.probe && !p.setup.retired {
		p.target.probing = false
	}
}

// decide stores the outcome of a dispatch, or lets the delivery wait as it was.
func (d *Dispatcher) decide(ctx context.Context, p *pick, r Result, counts bool, took time.Duration, now instant) func() {
	t, e, h := p.target, p.entry, p.hold
	m := Mark{Count: counts, Back: e.back, Error: r.Reason}
	switch {
	case r.Outcome == fatal:
		m.State = Dead
	case r.Outcome == Taken:
		m.State, m.Error, m.Replies = Delivered, "", p.replies
		if p.fault != "" {
			m.Error = "its answer was not taken: " + p.fault
		}
	case r.Outcome == Aborted, !counts && e.noted == r.Reason && e.back == 0:
		d.putBack(p)
		return nil
	case !counts:
		e.noted, e.due = r.Reason, 0
	default:
		e.noted = r.Reason
		e.attempts++
		if e.attempts >= t.MaxAttempts && now >= d.heard(e).add(MinAge) {
			m.State = Dead
			m.Error = fmt.Sprintf("%d attempts, the last: %s", e.attempts, r.Reason)
			break
		}
		m.Wait = d.wait(t, e, r, now)
		e.due = now.add(m.Wait)
	}
	e.back = 0
	e.marking = true
	d.push(&outcome{hold: h, entry: e, row: p.row(), mark: m})
	switch {
	case m.State != Pending, h.leaving:
	case t.passes(e) && e.due > now:
		p.lane.window.park(e)
	default:
		p.lane.insert(e)
	}
	d.goOn(p, now)
	return d.tell(ctx, p, m, r, took)
}

// wait is how long a delivery waits after an attempt that counted.
func (d *Dispatcher) wait(t *target, e *entry, r Result, now instant) time.Duration {
	wait := retryWait(e.attempts, d.random)
	if e.attempts >= t.MaxAttempts { // only MinAge keeps it alive
		wait = min(wait, time.Duration(d.heard(e).add(MinAge)-now)*time.Millisecond)
	}
	if r.After > 0 {
		wait = max(wait, toldWait(r.After, d.random))
	}
	return max(wait, 0)
}

// putBack lets a delivery wait as if nothing had happened.
func (d *Dispatcher) putBack(p *pick) {
	h, e, l := p.hold, p.entry, p.lane
	if h.gone {
		return
	}
	h.rest(p.row())
	if h.leaving || l.window.gone {
		return
	}
	if l.window.beyond(l, e.seq) {
		d.forget(e)
	} else {
		l.insert(e)
	}
	d.goOn(p, now())
}

// goOn lets the lane send what is next, after an entry of it has landed.
func (d *Dispatcher) goOn(p *pick, now instant) {
	if p.hold.leaving || p.lane.window.gone {
		return
	}
	p.lane.check(now)
	p.hold.tidy(p.lane.window)
}

// tell counts an outcome and returns what to log of it, after the lock.
func (d *Dispatcher) tell(ctx context.Context, p *pick, m Mark, r Result, took time.Duration) func() {
	t, attempt := p.target, p.entry.attempts
	attrs := []slog.Attr{slog.String("target", t.Name), slog.String("delivery", p.entry.webhookID)}
	if p.event != nil {
		attrs = append(attrs, slog.String("event", p.event.ID), slog.String("installation", p.event.Installation))
	}
	level := slog.LevelInfo
	switch m.State {
	case Delivered:
		t.delivered++
		replied := d.sayReplies(ctx, p, slices.Clone(attrs))
		attrs = append(attrs, slog.Int("attempt", attempt+1), slog.Float64("latency_ms", float64(took.Microseconds())/1000))
		return func() {
			d.log.LogAttrs(ctx, slog.LevelDebug, "delivered", attrs...)
			if replied != nil {
				replied()
			}
		}
	case Dead:
		t.dead++
		d.died(p, m.Error)
		attrs = append(attrs, slog.Int("attempt", attempt), slog.String("error", m.Error))
		return func() { d.log.LogAttrs(ctx, level, "dead letter", attrs...) }
	default:
		if !m.Count {
			level = slog.LevelDebug // its circuit says it once, for all
		} else {
			t.failed++
		}
		attrs = append(attrs, slog.Int("attempt", attempt), slog.String("error", r.Reason), slog.Time("next", p.entry.due.time()))
		return func() { d.log.LogAttrs(ctx, level, "delivery failed", attrs...) }
	}
}
