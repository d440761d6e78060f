// Package sse hears any server that sends server-sent events over HTTP, as the
// WHATWG's HTML standard describes them. Where the events hold what is
// configuration: see Config.
//
// It promises that the position in the stream moves only with what is stored, so
// that a server that honours Last-Event-ID repeats whatever was not; that a
// connection on which nothing comes for dead_after, not even a comment, is given
// up; and that neither a line nor an event without end takes more memory than
// max_size. It never reconnects by itself.
//
// The protocol has no acknowledgements and no pings. A server that forgets its
// events loses what happens between two connections, and one that sends no
// comments is taken for dead while it is merely quiet, unless dead_after says how
// quiet it may be.
package sse

import (
	"context"

	"leasehold/channel"
	"leasehold/internal/handshake"
)

// Spec is the type, under the name sse.
//
//nolint:gochecknoglobals // a table entry, never changed
var Spec = channel.Define(channel.Definition[Config]{
	Name:     "sse",
	Summary:  "Any stream of server-sent events, by configuration; an event without an id may repeat.",
	Deaf:     deadAfter,
	Default:  defaults,
	New:      newStream,
	Identity: func(c Config) string { return handshake.Identity(c.URL, c.Account) },
})

// stream is a Channel: one connection for one term.
type stream struct{ plan *plan }

var _ channel.Channel = (*stream)(nil)

func newStream(_ context.Context, c Config) (channel.Channel, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	return &stream{plan: p}, nil
}

// Run asks for the stream and hears until ctx or the connection ends.
func (s *stream) Run(ctx context.Context, link *channel.Link) error {
	conn, err := s.plan.open(ctx, link)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // whatever it was, ctx ended
		}
		return err
	}
	return newSession(s.plan, link, conn).run(ctx)
}
