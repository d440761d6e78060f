package app

import (
	"os"

	"leasehold/channel"
	"leasehold/channel/exec"
	"leasehold/channel/heartbeat"
	"leasehold/channel/mqtt"
	"leasehold/channel/sse"
	"leasehold/channel/websocket"
)

// Builtin are the channel types of the program itself. A new one is a line here,
// beside its package and its example in config.example.toml; its fake platform is a
// line below.
func Builtin() []channel.Spec {
	return []channel.Spec{
		heartbeat.Spec,
		websocket.Spec,
		sse.Spec,
		mqtt.Spec,
		exec.Spec(os.Environ()),
	}
}

// fakes are the platforms that leasehold fake opens, by the type they belong to.
func fakes() []fake {
	return []fake{
		{name: websocket.Spec.Name, scheme: "ws", open: fakeWebSocket},
		{name: sse.Spec.Name, scheme: "http", open: fakeSSE},
		{name: mqtt.Spec.Name, scheme: "mqtt", open: fakeMQTT},
	}
}
