// Package websocket connects to any service that speaks JSON, text or bytes over
// a WebSocket. What the service wants to hear and where its events hold what is
// all configuration: see Config.
//
// It promises that an event is acknowledged only after it is stored, that a
// half-open connection is noticed within dead_after, and that a quiet one is never
// given up: only silence of every kind counts, pongs included, and pings are sent
// to provoke an answer. It never reconnects by itself. A message counts as sent only
// once the service has answered it, or the ping that followed it: a write that
// returned says nothing.
//
// It speaks no platform's dialect: a hello that must be answered by computing
// something, or events that are split over frames, need a type of their own.
package websocket

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"leasehold/channel"
	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
)

// Spec is the type, under the name websocket.
//
//nolint:gochecknoglobals // a table entry, never changed
var Spec = channel.Define(channel.Definition[Config]{
	Name:       "websocket",
	Summary:    "Any WebSocket service, by configuration; without pointers.id an event may repeat.",
	Can:        channel.Capabilities{Send: true, Edit: true, Delete: true, React: true, Typing: true, Threads: true, Native: true}, // as far as its config says how
	Able:       able,
	Deaf:       deadAfter,
	Default:    defaults,
	New:        newSocket,
	Identity:   func(c Config) string { return handshake.Identity(c.URL, c.Account) },
	Idempotent: func(c Config) bool { return c.Answer.Dedupes },
})

// socket is a Channel: one connection for one term.
type socket struct {
	plan   *plan
	limits channel.Limits
	writes channel.Writing
	live   atomic.Pointer[session] // while it may speak
}

var (
	_ channel.Sender  = (*socket)(nil)
	_ channel.Limited = (*socket)(nil)
	_ channel.Writer  = (*socket)(nil)
)

func newSocket(_ context.Context, c Config) (channel.Channel, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	return &socket{
		plan: p, limits: channel.Limits{All: c.Rate, Chat: c.ChatRate},
		writes: channel.Writing{Markup: c.Markup, Limit: c.TextLimit, Unit: c.TextUnit},
	}, nil
}

// Limits are those of the config.
func (s *socket) Limits() channel.Limits { return s.limits }

// Writes is what the config says.
func (s *socket) Writes() channel.Writing { return s.writes }

// Run dials, says what the configuration wants said, and hears until ctx or the
// connection ends.
func (s *socket) Run(ctx context.Context, link *channel.Link) error {
	conn, err := s.dial(ctx, link)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // whatever it was, ctx ended
		}
		return err
	}
	return newSession(s.plan, link, conn, s.live.Store).run(ctx)
}

func (p *plan) cursor(at json.RawMessage) []byte {
	if at == nil || !p.resumes {
		return nil
	}
	return jsonframe.Cursor(p.place, at)
}

// resumeFrom returns the stored position, nil when there is none for this address.
func (p *plan) resumeFrom(cursor []byte) json.RawMessage { return jsonframe.Position(p.place, cursor) }
