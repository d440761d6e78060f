package websocket_test

import (
	"encoding/json"
	"strings"
	"testing"

	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
)

func TestAPlatformThatDropsRepeats(t *testing.T) {
	t.Run("it is one where the config says so, and none otherwise", func(t *testing.T) {
		for _, says := range []bool{true, false} {
			raw := websocketfake.New(websocketfake.Options{Dedupes: func(string) bool { return says }}).Config("ws://platform.test", "a", nil)
			c, err := websocket.Spec.Decode(raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Idempotent(); got != says {
				t.Errorf("got %v, want %v", got, says)
			}
		}
	})

	t.Run("without {{id}} it could not tell", func(t *testing.T) {
		raw, err := json.Marshal(map[string]any{
			"url": "ws://platform.test", "send": `{"text":{{text}}}`, "answer": map[string]any{"dedupes": true},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := websocket.Spec.Decode(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "answer.dedupes: send must hold {{id}}") {
			t.Errorf("got %v, want the fault", err)
		}
	})
}
