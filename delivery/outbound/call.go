package outbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"leasehold/channel"
	"leasehold/internal/loop"
)

// Why a call could not even be tried.
var (
	ErrNotHeld      = errors.New("its lease is not held here")
	ErrNotConnected = errors.New("it is not connected")
	ErrNoCalls      = errors.New("its connection takes no calls")
)

// Call makes one call of the platform's API through the connection of a lease that is
// held here, in its turn by the limit of all that the installation sends. It is not
// stored and made once at most. When the turn would come after ctx's deadline it is
// channel.RateLimited at once. Errors: ErrNotHeld, ErrNotConnected, ErrNoCalls, and
// those of channel.Caller.
func (m *Mailer) Call(ctx context.Context, lease string, c channel.Call) (json.RawMessage, error) {
	m.mu.Lock()
	h := m.holds[lease]
	var sender channel.Sender
	if h != nil {
		sender = h.sender
	}
	m.mu.Unlock()
	caller, can := sender.(channel.Caller)
	switch {
	case h == nil:
		return nil, ErrNotHeld
	case sender == nil:
		return nil, ErrNotConnected
	case !can:
		return nil, ErrNoCalls
	}
	if err := h.throttle.turn(ctx, c.Installation); err != nil {
		return nil, err
	}
	answer, err := caller.Call(ctx, c)
	if exit, ok := errors.AsType[*channel.Exit](err); ok && exit.Class == channel.ClassRateLimited && exit.All {
		h.throttle.shut(c.Installation, "", true, toldWait(exit.After, m.opts.Random))
	}
	return answer, err //nolint:wrapcheck // the platform's words, and what they say of the call
}

// turn waits until one call may be made, and takes it.
func (t *throttle) turn(ctx context.Context, installation string) error {
	for {
		wait, why := t.take(installation, "")
		if wait == 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return channel.RateLimited(fmt.Errorf("it would have to wait for %s", why), wait)
		}
		if err := loop.Sleep(ctx, wait); err != nil {
			return channel.NotSent(fmt.Errorf("wait for %s: %w", why, err))
		}
	}
}
