package mqtt_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/mqtt"
	"leasehold/channel/mqtt/mqttfake"
)

const (
	broker = "broker.test:1883"
	me     = "a" // our client id
	token  = channeltest.Token
)

// versions are those that every promise is kept in.
var versions = []string{"5", "3.1.1"}

// world is a stage with a fake broker.
type world struct {
	*channeltest.Stage
	fake *mqttfake.Server
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
		fake := mqttfake.New(o)
		var ref map[string]string
		if o.Password != nil {
			ref = channeltest.Ref()
		}
		w := &world{channeltest.NewStage(t, mqtt.Spec, fake, broker, me, fake.Config("mqtt://"+broker, me, ref)), fake}
		w.Config["version"] = version
		defer w.Close()
		f(w)
	})
}

func (w *world) is5() bool { return w.Config["version"] == "5" }

func build(config map[string]any) (channel.Channel, error) {
	return channeltest.Build(mqtt.Spec, config)
}

// start runs one term. Its Sender is the channel itself.
func (w *world) start() (*channeltest.Bench, channel.Sender) {
	w.T.Helper()
	ch := w.Channel()
	return w.Start(ch), ch.(channel.Sender)
}

// connected runs one term and waits until it is ready and quiet.
func (w *world) connected() (*channeltest.Bench, channel.Sender) {
	w.T.Helper()
	ch := w.Channel()
	return w.Connect(ch), ch.(channel.Sender)
}

// stop ends the term politely, and wants the broker to have nothing against it.
func (w *world) stop(b *channeltest.Bench, cause error) {
	w.T.Helper()
	w.Stop(b, cause)
	w.NoViolations()
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
	for _, e := range w.Memory.Events() {
		all = append(all, string(e.Raw)+string(e.Payload))
	}
	return all
}

func (w *world) wantKept(want ...string) {
	w.T.Helper()
	if got := w.bodies(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.T.Errorf("got %q kept, want %q", got, want)
	}
}

func (w *world) wantAcked() {
	w.T.Helper()
	if left := w.fake.Unacked(me); len(left) > 0 {
		w.T.Errorf("got %d messages unacknowledged, want none", len(left))
	}
}
