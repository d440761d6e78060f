package sse

import (
	"errors"
	"fmt"
	"io"
	"time"

	"leasehold/channel"
	"leasehold/internal/handshake"
)

const (
	// settled is how long a stream must have been open before its orderly end is
	// taken as "come again at once": a server that lets everybody in and closes
	// politely would otherwise be asked without end.
	settled = 10 * time.Second
	// ownDelay is what the engine waits after a first failure, at most. A server that
	// wants us to wait for less is asked no sooner.
	ownDelay = 2 * time.Second
)

// ended classifies the end of a stream that was open for a time; retry is what the
// server said of coming again.
//
// retry counts after an orderly end only: there the server speaks, and may mean to
// be asked every minute. After a break nobody knows whether it is still there, and
// the engine's waits grow until it is.
func (p *plan) ended(err error, retry, open time.Duration) error {
	closed := errors.New("the server ended the stream")
	switch {
	case errors.Is(err, errEndless):
		return channel.Failed("frame_too_large", fmt.Errorf("a line or an event of more than %d MiB came; the connection cannot go on", readLimit>>20))
	case !errors.Is(err, io.EOF):
		return channel.Failed("broken", p.words.Error("the connection broke: ", err))
	case retry > ownDelay:
		return channel.RateLimited(fmt.Errorf("%w and wants to be asked again in %s", closed, min(retry, handshake.MaxWait)), min(retry, handshake.MaxWait))
	case open < settled:
		return channel.Failed("closed", closed)
	default:
		return channel.Recycle(closed)
	}
}
