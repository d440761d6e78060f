package sse_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/sse"
	"leasehold/channel/sse/ssefake"
)

const (
	platform = "platform.test:80"
	bot      = "a"
	token    = "planted-token-1234567890"
)

// world is a fake server on a network in memory, and the store of one installation.
type world struct {
	t      *testing.T
	net    *channeltest.Net
	fake   *ssefake.Server
	memory *channeltest.Memory
	config map[string]any
}

// bubble runs f inside a synctest bubble with a world of its own. When f returns
// the server closes; a goroutine that is left then fails the test.
func bubble(t *testing.T, o ssefake.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.close()
		f(w)
	})
}

func newWorld(t *testing.T, o ssefake.Options) *world {
	t.Helper()
	w := &world{t: t, net: channeltest.NewNet(), fake: ssefake.New(o), memory: channeltest.NewMemory()}
	ln, err := w.net.Listen(platform)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.fake.Serve(ln) }()
	var ref map[string]string
	if o.Token != nil {
		ref = map[string]string{"env": "TOKEN"}
	}
	if err := json.Unmarshal(w.fake.Config("http://"+platform, bot, ref), &w.config); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) close() {
	w.net.Resume()
	w.fake.Close()
}

func resolve(_, name string) (string, error) {
	if name == "TOKEN" {
		return token, nil
	}
	return "", errors.New("not set")
}

// channel builds the channel from the world's config.
func (w *world) channel() channel.Channel {
	w.t.Helper()
	ch, err := build(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return ch
}

func build(config map[string]any) (channel.Channel, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	c, err := sse.Spec.Decode(raw, resolve)
	if err != nil {
		return nil, err
	}
	return c.Build(nil) //nolint:staticcheck // it makes no connection and looks at no context
}

// start runs one term.
func (w *world) start() *channeltest.Bench {
	w.t.Helper()
	b := channeltest.NewBench(w.net.DialContext, w.memory)
	b.Start(w.t.Context(), w.channel())
	return b
}

// connected runs one term and waits until it is ready and quiet.
func (w *world) connected() *channeltest.Bench {
	w.t.Helper()
	b := w.start()
	synctest.Wait()
	if len(b.Readies()) != 1 {
		b.Kill()
		w.t.Fatalf("got %d readies and %v, want one", len(b.Readies()), b.Wait())
	}
	return b
}

// wantExit waits for the term's own end and checks how it is classified.
func (w *world) wantExit(b *channeltest.Bench, class channel.Class, code string) channel.Exit {
	w.t.Helper()
	err := b.Wait()
	if err == nil {
		w.t.Fatalf("got no error, want %s %q", class, code)
	}
	got := channel.Classify(err)
	if got.Class != class || got.Code != code {
		w.t.Errorf("got %s %q (%v), want %s %q", got.Class, got.Code, err, class, code)
	}
	w.noSecret(b)
	return got
}

// stop ends the term politely and wants it to go at once.
func (w *world) stop(b *channeltest.Bench, cause error) {
	w.t.Helper()
	start := time.Now()
	if err := b.Stop(cause); err != nil {
		w.t.Errorf("stop: got %v, want nil", err)
	}
	if took := time.Since(start); took >= time.Second {
		w.t.Errorf("stop: took %s, want less than 1s", took)
	}
	synctest.Wait() // the server books the end
	w.noSecret(b)
}

func (w *world) noSecret(b *channeltest.Bench) {
	w.t.Helper()
	if said := b.Said(); strings.Contains(said, token) {
		w.t.Errorf("the secret left the channel: %s", said)
	}
}

func (w *world) noViolations() {
	w.t.Helper()
	if v := w.fake.Violations(bot); len(v) > 0 {
		w.t.Errorf("the server complains: %q", v)
	}
}

// kept lists the ids in the store.
func (w *world) kept() []string {
	ids := []string{}
	for _, e := range w.memory.Events() {
		ids = append(ids, e.ID)
	}
	return ids
}

func (w *world) lastConnection() ssefake.Connection {
	w.t.Helper()
	all := w.fake.Connections(bot)
	if len(all) == 0 {
		w.t.Fatal("there was no connection")
	}
	return all[len(all)-1]
}
