package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// startMax is what a start may take, from the exec to the platform's answer to the
// upgrade.
const startMax = 150 * time.Millisecond

// starts is one way to start, and what it took.
type starts struct {
	what   string
	before func(*node) error // how the process before it ended
	anew   bool              // in an empty folder
	took   []time.Duration
}

// startRows measures how long a start leaves an installation without its
// connection: after a stop, after a kill, and in an empty folder.
func startRows(ctx context.Context, b *bench) (rows []row, err error) {
	p, err := startPlatform(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	dir, err := b.prepare(setup{platform: p.address, bots: 1})
	if err != nil {
		return nil, err
	}
	ways := []*starts{
		{what: "after a stop", before: (*node).stop},
		{what: "after kill -9", before: (*node).kill},
		{what: "in an empty folder", before: (*node).stop, anew: true},
	}
	last, _, err := b.connect(ctx, p, dir) // what is on the disk gets into memory
	if err != nil {
		return nil, err
	}
	for range max(b.count, 10) {
		for _, w := range ways {
			if err := w.before(last); err != nil {
				return nil, err
			}
			if w.anew {
				if err := os.RemoveAll(dataDir(dir)); err != nil {
					return nil, fmt.Errorf("empty the data folder: %w", err)
				}
			}
			var took time.Duration
			if last, took, err = b.connect(ctx, p, dir); err != nil {
				return nil, err
			}
			w.took = append(w.took, took)
		}
	}
	for _, w := range ways {
		middle := median(w.took) // sorted from here on
		rows = append(rows, row{
			what:     "start to first connection, " + w.what,
			measured: fmt.Sprintf("%d ms (%d to %d)", middle.Milliseconds(), w.took[0].Milliseconds(), w.took[len(w.took)-1].Milliseconds()),
			ratio:    fmt.Sprintf("%.2f", middle.Seconds()/startMax.Seconds()),
			target:   fmt.Sprintf("< %d ms", startMax.Milliseconds()), verdict: judge(middle < startMax),
		})
	}
	return rows, last.stop()
}

// connect starts the program, and returns how long its connection took.
func (b *bench) connect(ctx context.Context, p *platform, dir string) (*node, time.Duration, error) {
	before := len(p.upgrades(bot(0)))
	n, err := b.start(ctx, dir)
	if err != nil {
		return nil, 0, err
	}
	err = n.await(ctx, "a connection", time.Minute, func() (bool, error) { return len(p.upgrades(bot(0))) > before, nil })
	if err != nil {
		return nil, 0, errors.Join(err, n.kill())
	}
	return n, p.upgrades(bot(0))[before].Sub(n.began), nil
}
