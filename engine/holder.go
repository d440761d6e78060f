package engine

import (
	"context"
	"encoding/json"

	"leasehold/channel"
)

// Holder does what a grant is for, beside the connection: it delivers what was
// accepted. delivery.Dispatcher is one; an embedder may write another.
//
// Calls for one installation come one after another, in this order: Hold, then
// any number of Live, Accepted and Ask, then Drop. None but Ask and Drop blocks.
type Holder interface {
	// Hold: granted. Start its lanes, from the store. t.Run is 0.
	Hold(t channel.Term)
	// Live: the term's connection is ready; s is nil when it cannot speak. It is
	// lent until the term ends, which Live with the same term and a nil s tells.
	Live(t channel.Term, s channel.Sender)
	// Targets names who shall have e: a delivery is stored for each, with the event.
	Targets(t channel.Term, e *channel.Event) []string
	// Accepted: events up to seq are committed. It may be coalesced.
	Accepted(t channel.Term, seq int64)
	// Ask hands an interaction to the user's program and waits for its own answer,
	// at most until ctx; false: it gave none.
	Ask(ctx context.Context, t channel.Term, e channel.Event) (json.RawMessage, bool)
	// Drop returns when no write for t will be made any more, at the latest with
	// ctx; then the lease is released.
	Drop(ctx context.Context, t channel.Term)
}
