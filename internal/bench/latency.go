package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"leasehold/internal/loop"
)

const (
	latencyEvents = 2000
	latencyPause  = 10 * time.Millisecond // 100 events a second
)

// latencyRows measures what an event takes from the moment when the platform is
// told to send it to the moment when its webhook has arrived, at a pace that nobody
// has to hurry for.
func latencyRows(ctx context.Context, b *bench) ([]row, error) {
	r, err := newReceiver(ctx)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	c := &courier{sent: map[string][]time.Time{}}
	r.heard = c.arrived
	err = b.with(ctx, setup{bots: throughBots, program: r.url}, func(n *node, p *platform) error {
		if _, err := b.round(ctx, n, p, r); err != nil { // connections and code get warm
			return err
		}
		c.start()
		for i := range latencyEvents {
			c.leaves(bot(i % throughBots))
			if err := p.push(bot(i%throughBots), 1); err != nil {
				return err
			}
			if err := loop.Sleep(ctx, latencyPause); err != nil {
				return err
			}
		}
		return n.await(ctx, "the last webhook", time.Minute, func() (bool, error) { return c.count() >= latencyEvents, nil })
	})
	if err != nil {
		return nil, err
	}
	took := c.sorted()
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
	return []row{{
		what:     fmt.Sprintf("from the platform to a webhook, %d events a second", time.Second/latencyPause),
		measured: fmt.Sprintf("p50 %s, p99 %s", ms(quantile(took, 50)), ms(quantile(took, 99))),
	}}, nil
}

// courier compares when an event left with when it arrived. Those of one bot keep
// their order, so the nth that arrives is the nth that left.
type courier struct {
	mu   sync.Mutex // guards what follows
	runs bool
	sent map[string][]time.Time // by bot: those that are on their way
	took []time.Duration
}

func (c *courier) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = true
}

func (c *courier) leaves(bot string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[bot] = append(c.sent[bot], time.Now())
}

// arrived takes a webhook's body.
func (c *courier) arrived(body []byte, at time.Time) {
	var e struct {
		Data struct {
			Installation struct {
				ID string `json:"id"`
			} `json:"installation"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil {
		return // what is missing at the end is told
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent := c.sent[e.Data.Installation.ID]; c.runs && len(sent) > 0 {
		c.took = append(c.took, at.Sub(sent[0]))
		c.sent[e.Data.Installation.ID] = sent[1:]
	}
}

func (c *courier) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.took)
}

func (c *courier) sorted() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.took)
	return c.took
}

// quantile of sorted values, in percent.
func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
