package app

import (
	"leasehold/channel"
	"leasehold/channel/heartbeat"
	"leasehold/channel/websocket"
)

// Builtin are the channel types of the program itself. A new one is a line here,
// beside its package and its example in config.example.toml.
func Builtin() []channel.Spec {
	return []channel.Spec{
		heartbeat.Spec,
		websocket.Spec,
	}
}
