package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// call makes one attempt, settles it, and returns what its goroutine does next.
func (d *Dispatcher) call(ctx context.Context, p *pick) *pick {
	if len(p.with) > 0 {
		return d.callBatch(ctx, p)
	}
	started := time.Now()
	v, r := d.sealed(p)
	if r.Outcome == fatal {
		return d.settle(ctx, p, r, 0)
	}
	limited, cancel := context.WithTimeout(ctx, p.setup.Timeout)
	defer cancel()
	d.mu.Lock()
	broken := p.broken
	p.cancel = cancel
	v.Attempt = p.entry.attempts + 1
	d.mu.Unlock()
	r = Result{Outcome: Aborted}
	if !broken {
		r = d.deliver(limited, p, v)
	}
	if p.setup.Batch <= 1 {
		p.replies, p.fault = d.reply(p, r)
	}
	return d.settle(ctx, p, r, time.Since(started))
}

// sealed is the attempt at a delivery, still without its number; or the fatal
// result of one that dies without.
func (d *Dispatcher) sealed(p *pick) (Delivery, Result) {
	switch {
	case p.event == nil:
		return Delivery{}, Result{Outcome: fatal, Reason: "its event is not in the store any more"}
	case p.tooOld != "":
		return Delivery{}, Result{Outcome: fatal, Reason: p.tooOld}
	}
	can, _ := d.opts.Can(p.event.ChannelType)
	body, typ, err := seal(*p.event, p.node, !p.setup.NoRaw, can.Send && !p.setup.NoReplies)
	if err != nil {
		return Delivery{}, Result{Outcome: fatal, Reason: err.Error()}
	}
	return Delivery{
		ID: p.entry.webhookID, EventID: p.event.ID, Type: typ, Installation: p.event.Installation, Replay: p.entry.replay, Envelope: body,
	}, Result{}
}

// deliver calls a sink for one delivery.
func (d *Dispatcher) deliver(ctx context.Context, p *pick, v Delivery) Result {
	return d.attempt(ctx, p, func(sink Sink) Result { return sink.Deliver(ctx, v) })
}

// attempt calls a sink, and keeps its panic from everybody else.
func (d *Dispatcher) attempt(ctx context.Context, p *pick, call func(Sink) Result) (r Result) {
	defer func() {
		if x := recover(); x != nil {
			d.log.LogAttrs(ctx, slog.LevelError, "sink panicked", slog.String("target", p.target.Name), slog.Any("panic", x), slog.String("stack", string(debug.Stack())))
			r = Result{Outcome: Broken, Reason: fmt.Sprintf("panic: %v", x)}
		}
		if errors.Is(ctx.Err(), context.Canceled) && (r.Outcome == Broken || r.Outcome == Slow || r.Outcome == Down) {
			r = Result{Outcome: Aborted} // a sink that does not know better
		}
	}()
	return call(p.setup.sink)
}

// breakOff ends the calls of a hold.
func (d *Dispatcher) breakOff(h *hold) {
	for _, e := range h.busy {
		if p := e.pick; p != nil {
			p.broken = true
			if p.cancel != nil {
				p.cancel()
			}
		}
	}
}
