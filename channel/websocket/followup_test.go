package websocket_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

func TestFollowUps(t *testing.T) {
	const address = "https://platform.example/planted"
	hooked := func(w *world, more string) {
		w.Config["interaction"] = map[string]any{
			"when": map[string]any{"pointer": "/type", "equals": "action"}, "working": `{"type":"working","id":{{id}}}`,
			"follow_up": "/hook/url", "follow_up_expires": "/hook/until", "follow_up_for": "10m", "hide": []string{"/token"},
		}
		w.Config["send"] = `{"type":"send","id":{{id}},"to":{{conversation}},"text":{{text}},"via":{{follow_up}}}`
		_, _ = w.speaking(true)
		w.fake.PushFrame(bot, "a1", []byte(`{"type":"action","id":"a1","conversation":"lobby","token":"planted-token","again":["planted-token"],"hook":{"url":"`+address+`"`+more+`}}`))
		synctest.Wait()
	}

	t.Run("the address stands beside the event, and raw holds neither it nor the other secrets", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			hooked(w, "")
			e := w.Memory.Events()[0]
			if got, want := fmt.Sprint(e.FollowUp.Address.Reveal(), " ", time.Until(e.FollowUp.Expires)), address+" 10m0s"; got != want {
				w.T.Errorf("got %s, want %s", got, want)
			}
			if strings.Contains(string(e.Raw), "planted") || !strings.Contains(string(e.Raw), `"conversation":"lobby"`) {
				w.T.Errorf("got raw %s, want all but the secrets", e.Raw)
			}
		})
	})

	t.Run("the platform says when it is over", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			hooked(w, `,"until":"2026-11-30T09:30:00Z"`)
			if got := w.Memory.Events()[0].FollowUp.Expires.UTC().Format(time.RFC3339); got != "2026-11-30T09:30:00Z" {
				w.T.Errorf("got %s, want what the frame says", got)
			}
		})
	})

	t.Run("send names the address of the event that it answers, or null", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["interaction"] = map[string]any{"follow_up": "/hook/url"}
			w.Config["send"] = `{"type":"send","id":{{id}},"to":{{conversation}},"text":{{text}},"via":{{follow_up}}}`
			_, sender := w.speaking(true)
			m := message("m1", "hi")
			if _, err := sender.Send(w.T.Context(), m); err != nil {
				w.T.Error(err)
			}
			w.fake.PushFrame(bot, "a1", []byte(`{"type":"event","id":"a1","hook":{"url":"`+address+`"}}`))
			synctest.Wait()
			m.ID, m.FollowUp = "m2", w.Memory.Events()[0].FollowUp.Address
			if _, err := sender.Send(w.T.Context(), m); err != nil {
				w.T.Error(err)
			}
			for n, want := range []string{`"via":null`, `"via":"` + address + `"`} {
				if got := string(w.fake.Received(bot)[n].Frame); !strings.Contains(got, want) {
					w.T.Errorf("message %d: got %s, want %s in it", n+1, got, want)
				}
			}
		})
	})

	for key, config := range map[string]map[string]any{
		"interaction.follow_up: is missing":      {"url": "ws://x", "interaction": map[string]any{"follow_up_expires": "/x"}},
		"interaction.follow_up: \"x\" is no":     {"url": "ws://x", "interaction": map[string]any{"follow_up": "x"}},
		"interaction.hide[1]: \"y\" is no":       {"url": "ws://x", "interaction": map[string]any{"hide": []string{"/x", "y"}}},
		"interaction.follow_up_for: want 1s to ": {"url": "ws://x", "interaction": map[string]any{"follow_up": "/x", "follow_up_for": "25h"}},
	} {
		t.Run("a fault is told: "+key, func(t *testing.T) {
			if _, err := build(config); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("got %v, want %q", err, key)
			}
		})
	}
}
