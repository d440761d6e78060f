package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"leasehold/internal/loop"
)

const (
	// perLinkMax is what a connection at rest may cost, and emptyMax what a node
	// without any may.
	perLinkMax = 60_000
	emptyMax   = 40_000_000
	few, many  = 100, 1000
	// settleFor is how long a node rests before its memory is read: the runtime
	// collects every two minutes at the latest, and so gives back what only the start
	// needed.
	settleFor = 130 * time.Second
)

// memoryRows measures what connections at rest cost in memory. Each node has a
// platform in another process, and all of them rest at the same time.
func memoryRows(ctx context.Context, b *bench) ([]row, error) {
	sizes := []int{0, few, many}
	used := make([]int64, len(sizes))
	g, together := errgroup.WithContext(ctx)
	for i, bots := range sizes {
		g.Go(func() (err error) {
			if used[i], err = b.memoryWith(together, bots); err != nil {
				return fmt.Errorf("%d installations: %w", bots, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	empty, atFew, atMany := float64(used[0]), float64(used[1]), float64(used[2])
	perLink := (atMany - atFew) / (many - few)
	return []row{{
		what: "memory of a connection at rest", measured: size(perLink),
		beside: fmt.Sprintf("%s at %s, %s at %d", size(atMany), count(many), size(atFew), few),
		ratio:  fmt.Sprintf("%.2f", perLink/perLinkMax), target: "< " + size(perLinkMax), verdict: judge(perLink < perLinkMax),
	}, {
		what: "memory without installations", measured: size(empty),
		ratio: fmt.Sprintf("%.2f", empty/emptyMax), target: "< " + size(emptyMax), verdict: judge(empty < emptyMax),
	}}, nil
}

// memoryWith returns what a node with so many connections has in RAM at rest.
func (b *bench) memoryWith(ctx context.Context, bots int) (used int64, err error) {
	s := setup{bots: bots, config: map[string]any{
		"ws_ping": false, "dead_after": "1h", // no heartbeats: what is left is what a connection is
	}}
	err = b.with(ctx, s, func(n *node, _ *platform) error {
		b.note("memory: %d connections are up; resting", bots)
		if err := loop.Sleep(ctx, min(settleFor, b.rest+10*time.Second)); err != nil {
			return err
		}
		used, err = rss(n.pid())
		return err
	})
	return used, err
}
