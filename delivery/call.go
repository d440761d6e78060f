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
	started := time.Now()
	if p.event == nil {
		return d.settle(ctx, p, Result{Outcome: fatal, Reason: "its event is not in the store any more"}, 0)
	}
	if p.tooOld != "" {
		return d.settle(ctx, p, Result{Outcome: fatal, Reason: p.tooOld}, 0)
	}
	body, typ, err := seal(*p.event, p.node, !p.setup.NoRaw)
	if err != nil {
		return d.settle(ctx, p, Result{Outcome: fatal, Reason: err.Error()}, 0)
	}
	limited, cancel := context.WithTimeout(ctx, p.setup.Timeout)
	defer cancel()
	d.mu.Lock()
	broken := p.broken
	p.cancel = cancel
	attempt := p.entry.attempts + 1
	d.mu.Unlock()
	r := Result{Outcome: Aborted}
	if !broken {
		r = d.deliver(limited, p, Delivery{
			ID: p.entry.webhookID, EventID: p.event.ID, Type: typ, Installation: p.event.Installation,
			Attempt: attempt, Replay: p.entry.replay, Envelope: body,
		})
	}
	if errors.Is(limited.Err(), context.Canceled) && (r.Outcome == Broken || r.Outcome == Slow || r.Outcome == Down) {
		r = Result{Outcome: Aborted} // a sink that does not know better
	}
	return d.settle(ctx, p, r, time.Since(started))
}

// deliver keeps a sink's panic from everybody else.
func (d *Dispatcher) deliver(ctx context.Context, p *pick, v Delivery) (r Result) {
	defer func() {
		if x := recover(); x != nil {
			d.log.LogAttrs(ctx, slog.LevelError, "sink panicked", slog.String("target", p.target.Name), slog.Any("panic", x), slog.String("stack", string(debug.Stack())))
			r = Result{Outcome: Broken, Reason: fmt.Sprintf("panic: %v", x)}
		}
	}()
	return p.setup.sink.Deliver(ctx, v)
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
