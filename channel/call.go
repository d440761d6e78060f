package channel

import (
	"context"
	"encoding/json"
)

// Call is one call of the platform's own API, for what no op of a message does.
type Call struct {
	Installation string          // who calls: the link's own, or a rider on it
	Method       string          // in the platform's words: chat.update, getChat
	Params       json.RawMessage // its arguments; nil = none
}

// Caller is a Sender through which people use the platform's API as it is: with the
// installation's credentials, which never leave the channel, over its connection or its
// HTTPClient. Its type says so in Capabilities.Call.
type Caller interface {
	Sender
	// Call returns what the platform answered, as JSON. It may be called from other
	// goroutines while Run runs, several at once; it is made once, whatever comes of it.
	// Its errors are those of Send: NotSent, surely not made; RateLimited and
	// RateLimitedAll, told to wait; Refused, the platform said no; any other: it may have
	// been made. They hold no secret; what of one stands in the answer is taken out
	// where it is shown.
	Call(ctx context.Context, c Call) (json.RawMessage, error)
}
