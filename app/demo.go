package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
	"leasehold/config"
	"leasehold/engine"
	"leasehold/internal/loop"
)

const (
	demoBot = "demo"
	// demoPace is between the events of a demo that goes on.
	demoPace = 3 * time.Second
	// demoPatience is how long a step may take before the demo gives up: the longest
	// is a first backoff of two seconds.
	demoPatience = 15 * time.Second
)

// demo is the whole program at work on one page: a fake platform, a program that
// takes webhooks, and between them the node as it always runs.
type demo struct {
	*program
	began    time.Time
	dir      string
	platform *websocketfake.Server
	ask      *admin.Client
	node     *background
	webhooks chan webhook
	sent     int
}

// demo runs until ctx ends, and leaves nothing behind.
func (p *program) demo(ctx context.Context) (err error) {
	d := &demo{program: p, began: time.Now(), webhooks: make(chan webhook, 16)}
	if d.dir, err = os.MkdirTemp("", "leasehold-demo-"); err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer closing(&err, func() error { return os.RemoveAll(d.dir) })

	d.platform = websocketfake.New(websocketfake.Options{})
	street, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the fake platform: %w", err)
	}
	platform := start(ctx, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, d.platform.Close)()
		return d.platform.Serve(street)
	})
	defer closing(&err, platform.stop)

	receiver, err := newReceiver(ctx, func(w webhook) {
		select {
		case d.webhooks <- w:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	receiving := start(ctx, receiver.run)
	defer closing(&err, receiving.stop)

	address := "ws://" + street.Addr().String()
	c, err := d.config(address, receiver.url())
	if err != nil {
		return err
	}
	d.say("A fake platform speaks on %s; a small program takes webhooks on %s.", address, receiver.url())
	d.say("Leasehold stands between them, with a database in %s that is removed at the end.", d.dir)
	d.node = start(ctx, func(ctx context.Context) error { return p.run(ctx, c, p.logger(c.Log, p.Stderr)) })
	defer closing(&err, d.node.stop)
	d.ask = admin.NewClient(admin.Socket(string(c.Admin.Socket)))
	defer d.ask.Close()

	err = d.story(ctx)
	if ctx.Err() != nil {
		d.say("Stopping: the connection says goodbye, the folder goes.")
		return nil
	}
	return err
}

// config is what a person would write into leasehold.toml for it.
func (d *demo) config(platform, program string) (*config.Config, error) {
	if !slices.ContainsFunc(d.Types, func(s channel.Spec) bool { return s.Name == websocket.Spec.Name }) {
		d.Types = append(slices.Clip(d.Types), websocket.Spec)
	}
	c := config.Default()
	c.Node.Name, c.Node.DataDir, c.Admin.Socket = "demo", config.Path(d.dir), config.Path(filepath.Join(d.dir, "leasehold.sock"))
	c.Log.Level = "warn" // the story tells the rest
	target := config.Target{Name: "program", Type: "http", URL: program, Events: []string{"*"}, Raw: true, Batch: 1}
	target.Timeout, target.MaxAge, target.MaxAttempts = config.Duration(10*time.Second), config.Duration(time.Hour), 10
	target.Order, target.Concurrency, target.OnFailure = "conversation", 4, "skip"
	c.Targets = []config.Target{target}
	c.Installations = []config.Installation{{
		ID: demoBot, Type: websocket.Spec.Name, Enabled: true, Interactions: admin.Defer, Config: d.platform.Config(platform, demoBot, nil), Pos: config.Pos{File: "the demo"},
	}}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("config of the demo: %w", err)
	}
	return c, nil
}

// story is what there is to see, in order; then it goes on until ctx ends.
func (d *demo) story(ctx context.Context) error {
	if err := d.connected(ctx); err != nil {
		return err
	}
	d.say("Bot %q is connected.", demoBot)
	if err := d.event(ctx); err != nil {
		return err
	}
	d.say("It was stored, then acknowledged, then delivered.")

	d.say("Now the connection is cut, without a goodbye.")
	cut := time.Now()
	d.platform.Cut(demoBot)
	if err := d.connected(ctx); err != nil {
		return err
	}
	d.say("It came back by itself, after %.1f s.", time.Since(cut).Seconds())
	if err := d.event(ctx); err != nil {
		return err
	}
	d.say("That is the job. An event follows every %d seconds until you press Ctrl-C.", int(demoPace.Seconds()))
	d.say("From another terminal: %s --data-dir %s status", os.Args[0], d.dir)
	for {
		if err := loop.Sleep(ctx, demoPace); err != nil {
			return err
		}
		if err := d.event(ctx); err != nil {
			return err
		}
	}
}

// connected waits until the platform has a connection and the node says so, as
// any program could ask it.
func (d *demo) connected(ctx context.Context) error {
	return d.await(ctx, "a connection", func() bool {
		v, err := d.ask.Installation(ctx, demoBot)
		return err == nil && v.Status.State == string(engine.Connected) && d.platform.Live(demoBot) > 0
	})
}

// event has the platform say something, and waits for its webhook.
func (d *demo) event(ctx context.Context) error {
	d.sent++
	id, text := fmt.Sprintf("%s-%d", demoBot, d.sent), fmt.Sprintf("hello, this is message %d", d.sent)
	frame, err := json.Marshal(map[string]string{
		"type": "message", "id": id, "text": text, "conversation": "lobby", "sender": "ada", "time": time.Now().UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	d.say("The platform says: %s", text)
	d.platform.PushFrame(demoBot, id, frame)
	return d.await(ctx, "the webhook", func() bool {
		select {
		case w := <-d.webhooks:
			d.say("  webhook: %s %q (%s, attempt %s, %s)", w.kind, w.text, w.id, w.attempt, w.event)
			return w.text == text
		default:
			return false
		}
	})
}

// await looks until done, and says what never came.
func (d *demo) await(ctx context.Context, what string, done func() bool) error {
	for deadline := time.Now().Add(demoPatience); !done(); {
		select {
		case <-d.node.ended:
			return errors.New("the node ended by itself")
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come within %v", what, demoPatience)
		}
		if err := loop.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// say writes one line of the story, with its time since the beginning.
func (d *demo) say(format string, args ...any) {
	d.line("%5.1fs  %s", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}
