package engine_test

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"time"

	"leasehold/channel"
)

// platform is what the test channels connect to: a listener in memory whose
// conversations the test steers.
type platform struct {
	r  *rig
	ln net.Listener

	mu    sync.Mutex // guards what follows
	rules map[string]rule
	calls map[string][]time.Time // begins of Run by installation
	live  map[string]int
	most  map[string]int
	built int
}

// rule is how the channel of one installation behaves.
type rule struct {
	build, run func(ctx context.Context, l *channel.Link) error // nil = as usual
	goer       func(l *channel.Link)
	send       func() error
	readyAfter time.Duration
	deaf       bool // ignores its context
}

func newPlatform(r *rig) *platform {
	ln, err := r.net.Listen("platform:1")
	if err != nil {
		r.Fatal(err)
	}
	p := &platform{r: r, ln: ln, rules: map[string]rule{}, calls: map[string][]time.Time{}, live: map[string]int{}, most: map[string]int{}}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // mute until the other end is gone
				_, _ = c.Read(make([]byte, 1))
				_ = c.Close()
			}()
		}
	}()
	return p
}

func (p *platform) close() { _ = p.ln.Close() }

func (p *platform) set(id string, f rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[id] = f
}

func (p *platform) rule(id string) rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules[id]
}

func (p *platform) runs(id string) int { return len(p.runTimes(id)) }

func (p *platform) runTimes(id string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls[id])
}

func (p *platform) connections(id string) (now, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live[id], p.most[id]
}

func (p *platform) count(id string, d int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[id] += d
	p.most[id] = max(p.most[id], p.live[id])
}

type testConfig struct {
	Token channel.Secret `json:"token" channel:"required,connection"`
}

func (p *platform) spec() channel.Spec {
	return channel.Define(channel.Definition[testConfig]{
		Name: "test", Summary: "steered by a test", Limits: channel.Limits{All: channel.Rate{N: 7, Per: time.Second}}, Writes: channel.Writing{Markup: "discord", Limit: 2000},
		New: func(ctx context.Context, c testConfig) (channel.Channel, error) {
			p.mu.Lock()
			p.built++
			build := p.rules["*build"].build
			p.mu.Unlock()
			if build != nil {
				if err := build(ctx, nil); err != nil {
					return nil, err
				}
			}
			return &testChannel{p, c}, nil
		},
	})
}

type testChannel struct {
	p *platform
	c testConfig
}

func (c *testChannel) Run(ctx context.Context, l *channel.Link) error {
	id := l.Installation()
	rule := c.p.rule(id)
	c.p.mu.Lock()
	c.p.calls[id] = append(c.p.calls[id], time.Now())
	c.p.mu.Unlock()
	if rule.run != nil {
		return rule.run(ctx, l)
	}
	conn, err := l.DialContext(ctx, "tcp", "platform:1")
	if err != nil {
		return err
	}
	c.p.count(id, 1)
	defer c.p.count(id, -1)
	defer func() { _ = conn.Close() }()
	if rule.goer != nil {
		l.Go(func() { rule.goer(l) })
	}
	if rule.readyAfter > 0 {
		time.Sleep(rule.readyAfter)
	}
	l.Ready(channel.Info{Identity: id})
	if rule.deaf {
		select {}
	}
	closed := make(chan error, 1)
	l.Go(func() { _, err := conn.Read(make([]byte, 1)); closed <- err })
	select {
	case <-ctx.Done():
		return nil
	case err := <-closed:
		return err
	}
}

func (c *testChannel) Call(_ context.Context, call channel.Call) (json.RawMessage, error) {
	return json.RawMessage(`"` + call.Method + `"`), c.p.rule("*send").send()
}

func (c *testChannel) Send(context.Context, channel.Message) (channel.Receipt, error) {
	return channel.Receipt{}, c.p.rule("*send").send()
}
