package engine

import (
	"context"
	"encoding/json"

	"leasehold/channel"
)

// lent is what of a channel is lent to the holder; nil when it cannot speak.
func (t *term) lent(ch channel.Channel) channel.Sender {
	sender, ok := ch.(channel.Sender)
	if !ok {
		return nil
	}
	guarded := &guardedSender{t, sender}
	if caller, ok := ch.(channel.Caller); ok {
		return &guardedCaller{guarded, caller}
	}
	return guarded
}

// guardedSender lends a channel's Send: through the gate, its panics caught.
type guardedSender struct {
	t *term
	channel.Sender
}

// Limits are the channel's own, or those of its type.
func (g *guardedSender) Limits() channel.Limits {
	if l, ok := g.Sender.(channel.Limited); ok {
		return l.Limits()
	}
	spec, _ := g.t.s.types.Lookup(g.t.row.Type) // it was built by it
	return spec.Limits
}

// Writes is the channel's own writing, or that of its type.
func (g *guardedSender) Writes() channel.Writing {
	if w, ok := g.Sender.(channel.Writer); ok {
		return w.Writes()
	}
	spec, _ := g.t.s.types.Lookup(g.t.row.Type) // as above
	return spec.Writes
}

// Send passes the gate, or surely does not send.
func (g *guardedSender) Send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	return lend(g.t, "send", func() (channel.Receipt, error) { return g.Sender.Send(ctx, m) })
}

// guardedCaller lends a channel's Call, too.
type guardedCaller struct {
	*guardedSender
	caller channel.Caller
}

// Call passes the gate, or surely is not made.
func (g *guardedCaller) Call(ctx context.Context, c channel.Call) (json.RawMessage, error) {
	return lend(g.t, "call", func() (json.RawMessage, error) { return g.caller.Call(ctx, c) })
}

// lend does what is asked of a channel on the goroutine of whoever asks.
func lend[T any](t *term, what string, do func() (T, error)) (got T, err error) {
	var none T
	if err := t.gate.pass(); err != nil {
		return none, channel.NotSent(killedBy(err))
	}
	failed := t.guarded(what, func() error {
		got, err = do()
		return nil
	})
	if failed != nil {
		t.panickedWith(failed)
		return none, failed // the outcome is unknown
	}
	return got, err
}

var _ channel.Caller = (*guardedCaller)(nil)
