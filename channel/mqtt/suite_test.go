package mqtt_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"leasehold/channel/channeltest"
	"leasehold/channel/mqtt"
	"leasehold/channel/mqtt/mqttfake"
)

func TestSuite(t *testing.T) {
	// The way to a connection is the same in both versions: it is broken in one.
	for version, steps := range map[string][]string{"5": mqttfake.Steps(), "3.1.1": {mqttfake.StepSuback, mqttfake.StepPublish, mqttfake.StepAck}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // what it does over TCP is mostly waiting
			channeltest.Run(t, channeltest.Harness{
				Spec:    mqtt.Spec,
				Steps:   steps,
				Refusal: "the broker refuses the connection: not ",
				Start: func(ln net.Listener, token string, step func(string)) channeltest.Platform {
					p := &fake{Server: mqttfake.New(mqttfake.Options{
						Password: func(string) string { return token },
						Step:     func(_, name string) { step(name) },
					}), version: version, pushed: map[string]int{}}
					for _, client := range []string{"a", "b"} {
						p.Session(client, "devices/"+client+"/#")
					}
					go func() { _ = p.Serve(ln) }()
					return p
				},
			})
		})
	}
}

// fake is the broker in the suite's hands.
type fake struct {
	*mqttfake.Server
	version string
	pushed  map[string]int
}

func (f *fake) Config(address, account string, quick bool) json.RawMessage {
	var c map[string]any
	if err := json.Unmarshal(f.Server.Config("mqtt://"+address, account, map[string]string{"env": "TOKEN"}), &c); err != nil {
		panic(err)
	}
	c["version"], c["dedupe"] = f.version, "/id" // so that the suite can know the ids
	if quick {
		c["keep_alive"] = "1s"
	}
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return raw
}

func (f *fake) Push(account string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		f.pushed[account]++
		ids[i] = f.push(fmt.Sprintf("devices/%s/%d", account, i%4), fmt.Sprint(f.pushed[account]), "21.5")
	}
	return ids
}

func (f *fake) push(topic, id, value string) string {
	f.Publish(mqttfake.Message{Topic: topic, Payload: fmt.Appendf(nil, `{"id":%q,"value":%s}`, id, value), QoS: 1})
	return topic + "#" + id
}

func (f *fake) PushOdd(account string, what channeltest.Oddity) string {
	value := `[{"is":null}]`
	if what == channeltest.Oversized {
		value = `"` + strings.Repeat("x", 3<<20) + `"`
	}
	return f.push("devices/"+account+"/odd/$share/❄", "odd", value)
}

func (f *fake) Garble(account string) { f.Raw(account, []byte("\xff\xff\xff\xff\x00\xf3")) }

func (f *fake) Unacked(account string) []string {
	var all []string
	for _, m := range f.Server.Unacked(account) {
		all = append(all, m.Topic)
	}
	return all
}

func (f *fake) Connections(account string) int { return len(f.Server.Connections(account)) }

func (f *fake) Complaints(account string) []string { return f.Violations(account) }

func (f *fake) Drop(account string, on bool) {
	f.Behave(account, mqttfake.Behaviour{Drop: on})
}
