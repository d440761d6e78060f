package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"leasehold/internal/loop"
)

const (
	// quietFor is how long nothing was written before the transitions count as
	// over: link states are written within a second, tasks begin within two.
	quietFor = 5 * time.Second
	quietMax = time.Minute
	// pingEvery is above the longest time between two pings of a connection.
	pingEvery = 25 * time.Second
	// tickEvery is how often a design that renews leases would do so, with leases of
	// ninety seconds.
	tickEvery = 30 * time.Second
)

// restRows measures what is written while nothing happens: connections are open,
// and answer pings.
func restRows(ctx context.Context, b *bench) ([]row, error) {
	sizes := []int{10, 1000}
	seen := make([]rest, len(sizes))
	g, together := errgroup.WithContext(ctx)
	for i, bots := range sizes {
		g.Go(func() (err error) {
			seen[i], err = b.watchRest(together, bots)
			if err != nil {
				return fmt.Errorf("%d installations: %w", bots, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var rows []row
	for i, bots := range sizes {
		other, err := b.perLease(ctx, bots) // alone: the counter is this process's
		if err != nil {
			return nil, err
		}
		theirs := float64(other.bytes) * float64(time.Hour/tickEvery)
		ours := float64(seen[i].bytes) * float64(time.Hour) / float64(b.rest)
		rows = append(rows, row{
			what:     fmt.Sprintf("written in %.0f s at rest, %s connections", b.rest.Seconds(), count(float64(bots))),
			measured: fmt.Sprintf("%s, %d files changed, %d pings", size(float64(seen[i].bytes)), seen[i].changed, seen[i].pings),
			beside:   fmt.Sprintf("an update per lease: %s an hour", size(theirs)),
			ratio:    fmt.Sprintf("%.3g", ours/theirs),
			target:   "0 B, 0 files", verdict: judge(seen[i].bytes == 0 && seen[i].changed == 0),
		})
	}
	return rows, nil
}

// rest is what was seen of a node at rest.
type rest struct {
	bytes   int64 // written
	changed int   // files of the data folder, by size, time, or content
	pings   int   // heard by the platform, and answered
}

func (b *bench) watchRest(ctx context.Context, bots int) (seen rest, err error) {
	err = b.with(ctx, setup{bots: bots}, func(n *node, p *platform) error {
		if err := n.quiet(ctx); err != nil {
			return err
		}
		_, pings, err := p.count()
		if err != nil {
			return err
		}
		before, err := written(n.pid())
		if err != nil {
			return err
		}
		files, err := fingerprint(n.data)
		if err != nil {
			return err
		}
		b.note("rest: %d connections are up; watching for %v", bots, b.rest)
		if err := loop.Sleep(ctx, b.rest); err != nil {
			return err
		}
		after, err := written(n.pid())
		if err != nil {
			return err
		}
		now, err := fingerprint(n.data)
		if err != nil {
			return err
		}
		live, heard, err := p.count()
		if err != nil {
			return err
		}
		seen = rest{after - before, different(files, now), heard - pings}
		if seen.pings == 0 && b.rest > pingEvery {
			return errors.New("the platform heard no ping, want every connection to send some")
		}
		if live != bots || p.upgradedOnce() != bots {
			return fmt.Errorf("got %d connections, %d without a second one, want %d at rest", live, p.upgradedOnce(), bots)
		}
		return nil
	})
	return seen, err
}

// quiet waits until nothing has been written for a while. Where that does not
// come the watch that follows tells it.
func (n *node) quiet(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	for began := time.Now(); time.Since(since) < quietFor && time.Since(began) < quietMax; {
		now, err := written(n.pid())
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if err := loop.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if last == 0 {
		return errors.New("the start wrote nothing that the system counts; choose a -dir on a disk")
	}
	return nil
}

// print of a file: what a writer cannot leave as it was.
type file struct {
	size     int64
	modified time.Time
	sum      [sha256.Size]byte
}

func fingerprint(dir string) (map[string]file, error) {
	all := map[string]file{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := file{size: info.Size(), modified: info.ModTime()}
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f.sum = sha256.Sum256(text)
		}
		all[path] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the data folder: %w", err)
	}
	return all, nil
}

// different counts the files that are in one only, or not the same in both.
func different(a, b map[string]file) (n int) {
	for path, f := range a {
		if other, ok := b[path]; !ok || other != f {
			n++
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			n++
		}
	}
	return n
}
