package websocket_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"leasehold/channel/channeltest"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
)

func TestSuite(t *testing.T) {
	channeltest.Run(t, channeltest.Harness{
		Spec:    websocket.Spec,
		Steps:   websocketfake.Steps(),
		Refusal: "401 Unauthorized: invalid token",
		Start: func(ln net.Listener, token string, step func(string)) channeltest.Platform {
			p := &fake{websocketfake.New(websocketfake.Options{
				Token: func(string) string { return token },
				Step:  func(_, name string) { step(name) }, Dedupes: func(string) bool { return true },
			})}
			go func() { _ = p.Serve(ln) }()
			return p
		},
	})
}

// fake is the platform in the suite's hands.
type fake struct{ *websocketfake.Server }

func (f *fake) Config(address, account string, quick bool) json.RawMessage {
	var c map[string]any
	if err := json.Unmarshal(f.Server.Config("ws://"+address, account, map[string]string{"env": "TOKEN"}), &c); err != nil {
		panic(err)
	}
	c["account"] = account
	if quick {
		c["ping_every"], c["dead_after"] = "1s", "3s"
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
		ids[i] = fmt.Sprintf("%s-%06d", account, f.Pushed(account)+i+1)
	}
	f.Server.Push(account, n)
	return ids
}

func (f *fake) PushOdd(account string, what channeltest.Oddity) string {
	id, frame := "unknown-1", `{"type":"brand_new","id":"unknown-1","what":[{"is":null}]}`
	if what == channeltest.Oversized {
		id, frame = "huge-1", `{"type":"message","id":"huge-1","text":"`+strings.Repeat("x", 3<<20)+`"}`
	}
	f.PushFrame(account, id, []byte(frame))
	return id
}

func (f *fake) Garble(account string) { f.Raw(account, websocketfake.Garbage()) }

func (f *fake) Said(account string) (ids []string) {
	for _, m := range f.Received(account) {
		ids = append(ids, m.ID)
	}
	return ids
}

func (f *fake) Connections(account string) int { return len(f.Server.Connections(account)) }

func (f *fake) Complaints(account string) []string { return f.Violations(account) }

func (f *fake) Drop(account string, on bool) {
	f.Behave(account, websocketfake.Behaviour{Drop: on})
}
