package websocket

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
	"leasehold/internal/handshake"
)

// settled is how long a connection must have been ready before the platform's
// orderly close is taken as "come again at once". No platform recycles sooner; a
// server that lets everybody in and closes politely would otherwise be dialled
// without end.
const settled = 10 * time.Second

// closed classifies the end of a connection that was up. readyFor is how long the
// platform had said so; 0 = it never did.
func (p *plan) closed(err error, readyFor time.Duration) error {
	var ce websocket.CloseError
	if !errors.As(err, &ce) {
		return p.broken(err)
	}
	said := fmt.Errorf("the server closed the connection with %d", ce.Code)
	if reason := p.words.Show(ce.Reason); reason != "" {
		said = fmt.Errorf("%w: %s", said, reason)
	}
	code := fmt.Sprintf("close_%d", ce.Code)
	if slices.Contains(p.authCodes, int(ce.Code)) {
		return channel.Rejected("auth", fmt.Errorf("%w; check headers and secrets", said))
	}
	switch ce.Code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusServiceRestart, websocket.StatusNoStatusRcvd:
		if readyFor < settled {
			return channel.Failed(code, said)
		}
		return channel.Recycle(said)
	case websocket.StatusTryAgainLater:
		return channel.RateLimited(said, handshake.Sulk)
	case websocket.StatusPolicyViolation, websocket.StatusInvalidFramePayloadData, websocket.StatusUnsupportedData, websocket.StatusMessageTooBig:
		return channel.Rejected(code, fmt.Errorf("%w; check login, subscribe and ack", said))
	default:
		return channel.Failed(code, said)
	}
}

// broken is an end without a close frame.
func (p *plan) broken(err error) error {
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return channel.Failed("frame_too_large", fmt.Errorf("a message of more than %d MiB came; the connection cannot go on", readLimit>>20))
	}
	return channel.Failed("close_1006", p.words.Error("the connection broke: ", err))
}
