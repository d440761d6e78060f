package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/store"
)

// messagePoll is how often a node that is not alone looks for messages that another
// one has taken in and of which it was not told: one that died right then.
const messagePoll = 5 * time.Second

// mailer makes what sends messages.
func mailer(ctx context.Context, s store.Store, types *channel.Types, f *followUps, log *slog.Logger) *outbound.Mailer {
	o := outbound.Options{
		Log: log, Changed: s.WatchMessages(ctx),
		Idempotent: func(ctx context.Context, installation string) bool { return repeats(ctx, s, types, installation) },
		FollowUp:   f.open,
	}
	if !s.Sole() {
		o.Poll = messagePoll
	}
	return outbound.New(s, o)
}

// repeatsWithin bounds the look at an installation's config: a message waits for it.
const repeatsWithin = 3 * time.Second

// repeats reports whether an installation's platform drops the second of two messages
// with one id. When that cannot be told, it does not: the message stays unknown.
func repeats(ctx context.Context, s store.Store, types *channel.Types, installation string) bool {
	ctx, cancel := context.WithTimeout(ctx, repeatsWithin)
	defer cancel()
	row, err := s.Installation(ctx, installation)
	if err != nil {
		return false
	}
	config, err := types.Decode(row.Type, row.Config)
	return err == nil && config.Idempotent()
}

// grantee is what a grant is for: events are delivered, and messages are sent.
type grantee struct {
	*router
	mailer *outbound.Mailer
}

var _ engine.Holder = (*grantee)(nil)

// Hold implements engine.Holder.
func (g *grantee) Hold(t channel.Term) {
	g.router.Hold(t)
	g.mailer.Hold(t)
}

// Live implements engine.Holder.
func (g *grantee) Live(t channel.Term, s channel.Sender) {
	g.router.Live(t, s)
	g.mailer.Live(t, s)
}

// Drop implements engine.Holder. Both are given the same time.
func (g *grantee) Drop(ctx context.Context, t channel.Term) {
	var both sync.WaitGroup
	both.Go(func() { g.router.Drop(ctx, t) })
	both.Go(func() { g.mailer.Drop(ctx, t) })
	both.Wait()
}
