package websocket_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
)

func TestInteractions(t *testing.T) {
	press := func(w *world, id string) {
		w.fake.PushFrame(bot, id, []byte(`{"type":"action","id":"`+id+`","conversation":"lobby"}`))
	}
	said := func(w *world) string {
		var all []string
		for _, a := range w.fake.Answers(bot) {
			all = append(all, strings.TrimSpace(a.ID+" "+a.Type+" "+string(a.Ack)))
		}
		return strings.Join(all, "; ")
	}
	// run runs a term behind which a program answers.
	run := func(t *testing.T, answer func(ctx context.Context, e channel.Event) (json.RawMessage, bool), f func(w *world)) {
		t.Helper()
		bubble(t, websocketfake.Options{}, func(w *world) {
			b := channeltest.NewBench(w.Net.DialContext, w.Memory)
			b.Answers = answer
			b.Start(w.T.Context(), w.Channel())
			synctest.Wait()
			f(w)
		})
	}

	t.Run("the program's own answer goes to the platform as it is", func(t *testing.T) {
		run(t, func(_ context.Context, e channel.Event) (json.RawMessage, bool) {
			return json.RawMessage(`{"modal": "` + e.ID + `"}`), true
		}, func(w *world) {
			press(w, "a1")
			time.Sleep(time.Second)
			if got, want := said(w), `a1 answer {"modal": "a1"}`; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	})

	t.Run("without one the platform hears at once that it is worked on", func(t *testing.T) {
		run(t, nil, func(w *world) {
			press(w, "a1")
			time.Sleep(time.Second)
			if got, want := said(w), "a1 working"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	})

	t.Run("who waits for an answer holds up neither events nor other answers", func(t *testing.T) {
		run(t, func(ctx context.Context, e channel.Event) (json.RawMessage, bool) {
			if e.ID == "slow" {
				time.Sleep(2 * time.Second)
				return nil, false
			}
			return json.RawMessage(`1`), true
		}, func(w *world) {
			press(w, "slow")
			press(w, "fast")
			w.fake.Push(bot, 5)
			time.Sleep(time.Second)
			if got, want := said(w), "fast answer 1"; got != want {
				t.Errorf("after a second: got %q, want %q", got, want)
			}
			if got := w.fake.AckedCount(bot); got != 7 {
				t.Errorf("got %d acknowledged after a second, want all seven", got)
			}
			time.Sleep(2 * time.Second)
			if got, want := said(w), "fast answer 1; slow working"; got != want {
				t.Errorf("after three: got %q, want %q", got, want)
			}
		})
	})

	t.Run("a connection that ends waits for nobody", func(t *testing.T) {
		ended := make(chan struct{})
		run(t, func(ctx context.Context, _ channel.Event) (json.RawMessage, bool) {
			<-ctx.Done()
			close(ended)
			return nil, false
		}, func(w *world) {
			press(w, "a1")
			synctest.Wait()
			w.fake.Cut(bot)
			synctest.Wait()
			select {
			case <-ended:
			default:
				t.Error("got somebody who waits still, want the wait over with the connection")
			}
		})
	})

	for key, config := range map[string]string{
		"interaction.when: is missing":          `{"url":"ws://x","interaction":{"working":"w"}}`,
		"interaction.answer: must hold {{ack}}": `{"url":"ws://x","interaction":{"when":{"pointer":"/a"},"answer":"a"}}`,
		"interaction.working: ":                 `{"url":"ws://x","interaction":{"when":{"pointer":"/a"},"working":"{{ack}}"}}`,
	} {
		t.Run("a fault is told: "+key, func(t *testing.T) {
			c, err := websocket.Spec.Decode(json.RawMessage(config), nil)
			if err == nil {
				_, err = c.Build(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("got %v, want %q", err, key)
			}
		})
	}
}
