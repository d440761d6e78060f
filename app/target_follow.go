package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"leasehold/admin"
	"leasehold/app/herald"
	"leasehold/delivery"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
	"leasehold/store"
)

const (
	// followEvery is how often the store's targets are looked at where others may
	// change them and nobody is told, behind a pooler or after a lost connection.
	followEvery = 5 * time.Second
	// followAgain is the wait after a look that failed.
	followAgain = time.Second
)

// FollowTargets implements admin.LiveTargets: it puts in force what the store has of
// targets. Those that are as they were keep their connections and their circuits.
func (r *reloader) FollowTargets(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows, err := r.n.store.Targets(ctx)
	if err != nil {
		return err
	}
	if slices.EqualFunc(rows, r.rows, sameTarget) {
		return nil
	}
	c := withTargets(r.n.config.Load(), rows, r.p.source(), r.log)
	targets := r.p.withKeys(targetsOf(c, r.n.poster(), r.resolve))
	for _, err := range r.keep(targets, func(name string) bool { return r.stands(rows, name) }) {
		r.log.WarnContext(ctx, "keys not taken up", "error", err, "next_step", "correct it; it is tried again within tasks.key_reload.every")
	}
	change, err := prepared(r.n.dispatcher, settingsOf(c, targets))
	if err != nil {
		return err
	}
	added, changed, removed := change.Apply()
	r.rows, r.targets = rows, targets
	r.n.config.Store(c)
	r.n.router.follow(c)
	if len(added)+len(changed)+len(removed) > 0 {
		r.log.InfoContext(ctx, "targets taken up", "added", added, "changed", changed, "removed", removed)
		warnOfCircles(c, r.log)
	}
	return nil
}

func sameTarget(a, b admin.TargetRow) bool {
	return a.Name == b.Name && a.Source == b.Source && string(a.Config) == string(b.Config) && a.Off == b.Off && a.Reason == b.Reason
}

// stands reports whether a target is in rows as it was taken up before.
func (r *reloader) stands(rows []admin.TargetRow, name string) bool {
	is := func(t admin.TargetRow) bool { return t.Name == name }
	a, b := slices.IndexFunc(rows, is), slices.IndexFunc(r.rows, is)
	return a >= 0 && b >= 0 && sameTarget(rows[a], r.rows[b])
}

// followStore takes up what others change of the targets, until ctx ends.
func (r *reloader) followStore(ctx context.Context) error {
	changes := r.n.store.Watch(ctx)
	var poll <-chan time.Time
	if !r.n.store.Sole() {
		t := time.NewTicker(followEvery)
		defer t.Stop()
		poll = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-poll:
		}
		if err := r.FollowTargets(ctx); err != nil && ctx.Err() == nil {
			r.log.DebugContext(ctx, "targets not looked at", "error", err)
			_ = loop.Sleep(ctx, followAgain) // that ctx has ended is seen above
		}
	}
}

// live are the targets of the node, as the handlers ask for them.
type live struct {
	*delivery.Dispatcher
	*reloader
}

var _ admin.LiveTargets = live{}

// gone stores which targets answered 410, so that they stay off over a restart, and on
// every node.
type gone struct {
	store store.Store
	log   *slog.Logger

	mu    sync.Mutex // guards names
	names map[string]string
	more  chan struct{}
}

func newGone(s store.Store, log *slog.Logger) *gone {
	return &gone{store: s, log: log, names: map[string]string{}, more: make(chan struct{}, 1)}
}

// note does not block.
func (g *gone) note(name, reason string) {
	g.mu.Lock()
	g.names[name] = reason
	g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// Run stores what is noted until ctx ends.
func (g *gone) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.more:
		}
		g.mu.Lock()
		names := g.names
		g.names = map[string]string{}
		g.mu.Unlock()
		for name, reason := range names {
			err := g.store.SwitchTarget(ctx, name, admin.OffGone, reason)
			if err == nil || fault.Is(err, fault.NotFound) || ctx.Err() != nil {
				continue
			}
			g.log.WarnContext(ctx, "target is off here, and would be asked again after a restart", "target", name, "error", err)
			g.note(name, reason)
			_ = loop.Sleep(ctx, followAgain) // that ctx has ended is seen above
		}
	}
}

// listener is who hears what delivery tells, for the herald and for gone.
type listener struct {
	*herald.Herald
	gone *gone
}

var _ delivery.Observer = listener{}

// Target implements delivery.Observer.
func (o listener) Target(c delivery.TargetChange) {
	if c.To == delivery.Disabled {
		o.gone.note(c.Target, c.Reason)
	}
	o.Herald.Target(c)
}
