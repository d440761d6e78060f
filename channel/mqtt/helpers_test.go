package mqtt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/mqtt"
	"leasehold/channel/mqtt/mqttfake"
)

const (
	broker = "broker.test:1883"
	me     = "a" // our client id
	token  = "planted-token-1234567890"
)

// versions are those that every promise is kept in.
var versions = []string{"5", "3.1.1"}

// world is a fake broker on a network in memory, and the store of one installation.
type world struct {
	t      *testing.T
	net    *channeltest.Net
	fake   *mqttfake.Server
	memory *channeltest.Memory
	config map[string]any
}

// bubble runs f for each version inside a synctest bubble with a world of its own.
// When f returns the broker closes; a goroutine that is left then fails the test.
func bubble(t *testing.T, o mqttfake.Options, f func(w *world)) {
	t.Helper()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { bubbleOf(t, version, o, f) })
	}
}

// bubbleOf is bubble for one version.
func bubbleOf(t *testing.T, version string, o mqttfake.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: channeltest.NewNet(), fake: mqttfake.New(o), memory: channeltest.NewMemory()}
		ln, err := w.net.Listen(broker)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = w.fake.Serve(ln) }()
		var ref map[string]string
		if o.Password != nil {
			ref = map[string]string{"env": "TOKEN"}
		}
		if err := json.Unmarshal(w.fake.Config("mqtt://"+broker, me, ref), &w.config); err != nil {
			t.Fatal(err)
		}
		w.config["version"] = version
		defer func() {
			w.net.Resume()
			w.fake.Close()
		}()
		f(w)
	})
}

func (w *world) is5() bool { return w.config["version"] == "5" }

func resolve(_, name string) (string, error) {
	if name == "TOKEN" {
		return token, nil
	}
	return "", errors.New("not set")
}

func build(config map[string]any) (channel.Channel, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	c, err := mqtt.Spec.Decode(raw, resolve)
	if err != nil {
		return nil, err
	}
	return c.Build(nil) //nolint:staticcheck // it makes no connection and looks at no context
}

// start runs one term. Its Sender is the channel itself.
func (w *world) start() (*channeltest.Bench, channel.Sender) {
	w.t.Helper()
	ch, err := build(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	b := channeltest.NewBench(w.net.DialContext, w.memory)
	b.Start(w.t.Context(), ch)
	return b, ch.(channel.Sender)
}

// connected runs one term and waits until it is ready and quiet.
func (w *world) connected() (*channeltest.Bench, channel.Sender) {
	w.t.Helper()
	b, s := w.start()
	synctest.Wait()
	if len(b.Readies()) != 1 {
		b.Kill()
		w.t.Fatalf("got %d readies and %v, want one", len(b.Readies()), b.Wait())
	}
	return b, s
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
	synctest.Wait() // the broker books the end
	w.noSecret(b)
	w.noViolations()
}

func (w *world) noSecret(b *channeltest.Bench) {
	w.t.Helper()
	if said := b.Said(); strings.Contains(said, token) {
		w.t.Errorf("the secret left the channel: %s", said)
	}
}

func (w *world) noViolations() {
	w.t.Helper()
	if v := w.fake.Violations(me); len(v) > 0 {
		w.t.Errorf("the broker complains: %q", v)
	}
}

// publish gives the broker n numbered messages of QoS 1 for us.
func (w *world) publish(n int) {
	for i := range n {
		w.fake.Publish(message(fmt.Sprintf(`{"n":%d}`, i), 1))
	}
}

// message is one for us.
func message(payload string, qos byte) mqttfake.Message {
	return mqttfake.Message{Topic: "devices/a/t", Payload: []byte(payload), QoS: qos}
}

// bodies lists what the events in the store hold.
func (w *world) bodies() []string {
	all := []string{}
	for _, e := range w.memory.Events() {
		all = append(all, string(e.Raw)+string(e.Payload))
	}
	return all
}

func (w *world) wantKept(want ...string) {
	w.t.Helper()
	if got := w.bodies(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("got %q kept, want %q", got, want)
	}
}

func (w *world) wantAcked() {
	w.t.Helper()
	if left := w.fake.Unacked(me); len(left) > 0 {
		w.t.Errorf("got %d messages unacknowledged, want none", len(left))
	}
}
