package app

import (
	"context"
	"time"

	"leasehold/internal/loop"
)

const (
	// replayEvery is how often other nodes' replays are looked for, at most, and
	// replayWithin bounds the look.
	replayEvery, replayWithin = 200 * time.Millisecond, 3 * time.Second
)

// replaying is a store in which one node may ask for a replay of what another one
// delivers.
type replaying interface {
	// Replaying lists the leases under which replays wait.
	Replaying(ctx context.Context) ([]string, error)
}

// heedReplays has this node deliver what was asked for on others, until ctx ends.
// What it does not get to see, the next change tells it.
func (n *node) heedReplays(ctx context.Context) error {
	s, ok := n.store.(replaying)
	if !ok {
		return nil
	}
	for changes := n.store.Watch(ctx); ctx.Err() == nil; _ = loop.Sleep(ctx, replayEvery) {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
		looking, cancel := context.WithTimeout(ctx, replayWithin)
		leases, err := s.Replaying(looking)
		cancel()
		if err == nil {
			n.Wake(leases)
		}
	}
	return nil
}
