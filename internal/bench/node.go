package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"

	"leasehold/channel/websocket/websocketfake"
	"leasehold/internal/loop"
)

// setup is what a node is to do.
type setup struct {
	platform string         // its address
	bots     int            // installations, each with a connection
	program  string         // the URL of the only target; "" = one that is never called
	config   map[string]any // of an installation, beside what connects to the platform
	// install is the config of an mqtt installation, in place of all that; nil = there
	// is a platform.
	install func(i int) map[string]any
}

// installation is the ith that a node has.
func (s setup) installation(fake *websocketfake.Server, i int) (map[string]any, error) {
	if s.install != nil {
		return map[string]any{"id": bot(i), "type": "mqtt", "config": s.install(i)}, nil
	}
	var config map[string]any
	if err := json.Unmarshal(fake.Config(s.platform, bot(i), nil), &config); err != nil {
		return nil, fmt.Errorf("read the fake platform's config: %w", err)
	}
	maps.Copy(config, s.config)
	return map[string]any{"id": bot(i), "type": "websocket", "config": config}, nil
}

// prepare makes a folder with a config, and returns the folder.
func (b *bench) prepare(s setup) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "node-")
	if err != nil {
		return "", fmt.Errorf("make a folder for a node: %w", err)
	}
	fake := websocketfake.New(websocketfake.Options{})
	defer fake.Close()
	var installations []map[string]any
	for i := range s.bots {
		one, err := s.installation(fake, i)
		if err != nil {
			return "", err
		}
		installations = append(installations, one)
	}
	if s.program == "" {
		s.program = "http://127.0.0.1:9/" // discard
	}
	text, err := toml.Marshal(map[string]any{
		"node":         map[string]any{"name": "bench", "data_dir": dataDir(dir)},
		"admin":        map[string]any{"socket": filepath.Join(dir, "s")},
		"target":       []any{map[string]any{"name": "program", "type": "http", "url": s.program, "events": []string{"*"}}},
		"installation": installations,
	})
	if err != nil {
		return "", fmt.Errorf("write a config: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "leasehold.toml"), text, 0o600); err != nil {
		return "", fmt.Errorf("write a config: %w", err)
	}
	return dir, nil
}

func bot(i int) string { return fmt.Sprintf("bot-%04d", i+1) }

func dataDir(dir string) string { return filepath.Join(dir, "data") }

// node is the program as a process of its own.
type node struct {
	cmd   *exec.Cmd
	data  string    // its data folder
	began time.Time // right before it was executed
	said  tail
	ended chan struct{} // closed once err is known
	err   error
}

// start runs the program on a prepared folder. What it logs goes through a pipe,
// which no disk counts.
func (b *bench) start(ctx context.Context, dir string) (*node, error) {
	n := &node{data: dataDir(dir), ended: make(chan struct{})}
	n.cmd = exec.CommandContext(ctx, b.binary, "run", "--config", filepath.Join(dir, "leasehold.toml"))
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = dir, &n.said, &n.said
	n.began = time.Now()
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	go func() {
		defer close(n.ended)
		n.err = n.cmd.Wait()
	}()
	return n, nil
}

// with runs f once a node has all its connections to a platform of its own.
func (b *bench) with(ctx context.Context, s setup, f func(*node, *platform) error) (err error) {
	p, err := startPlatform(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	s.platform = p.address
	dir, err := b.prepare(s)
	if err != nil {
		return err
	}
	n, err := b.start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	if err := n.connected(ctx, p, s.bots); err != nil {
		return err
	}
	return f(n, p)
}

func (n *node) pid() int { return n.cmd.Process.Pid }

// stop ends it as a service manager does; it must end well.
func (n *node) stop() error {
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which Wait tells
	<-n.ended
	if n.err != nil {
		return fmt.Errorf("stop a node: %w; its last words: %s", n.err, n.said.text())
	}
	return nil
}

// kill ends it as nothing could prevent.
func (n *node) kill() error {
	_ = n.cmd.Process.Kill() // likewise
	<-n.ended
	return nil
}

// await looks every few milliseconds until done.
func (n *node) await(ctx context.Context, what string, within time.Duration, done func() (bool, error)) error {
	for deadline := time.Now().Add(within); ; {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-n.ended:
			return fmt.Errorf("the node ended by itself: %w; its last words: %s", errors.Join(n.err, ctx.Err()), n.said.text())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come within %v; the node's last words: %s", what, within, n.said.text())
		}
		if err := loop.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// connected waits until the platform has n connections.
func (n *node) connected(ctx context.Context, p *platform, want int) error {
	// Fifty dials a second is the default; the rest is for a busy machine.
	within := time.Minute + time.Duration(want)*100*time.Millisecond
	return n.await(ctx, fmt.Sprintf("%d connections", want), within, func() (bool, error) {
		live, _, err := p.count()
		return live == want, err
	})
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex // guards last
	last []byte
}

// Write is io.Writer's.
func (t *tail) Write(b []byte) (int, error) {
	const keep = 2 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if over := len(t.last) - keep; over > 0 {
		t.last = append([]byte(nil), t.last[over:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.last))
}
