package websocket_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
)

// on is an operation on the platform's message.
func on(id, op, message, text string) channel.Message {
	return channel.Message{ID: id, Op: op, Conversation: "lobby", MessageID: message, Text: text}
}

// sent sends a message and returns the platform's id of it.
func (w *world) sent(s channel.Sender, id, text string) string {
	w.T.Helper()
	receipt, err := s.Send(w.T.Context(), message(id, text))
	if err != nil || receipt.MessageID == "" {
		w.T.Fatalf("got %+v and %v, want the platform's id", receipt, err)
	}
	return receipt.MessageID
}

func TestAMessageIsChangedAsTheTemplateOfTheOpSays(t *testing.T) {
	t.Run("each op does what it is called", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(true)
			first, second := w.sent(s, "m1", "draft"), w.sent(s, "m2", "gone soon")
			for _, m := range []channel.Message{
				on("o1", "typing", "", ""), on("o2", "edit", first, "final"), on("o3", "react", first, "eyes"), on("o4", "react", first, "done"),
				on("o5", "unreact", first, "eyes"), on("o6", "delete", second, ""),
			} {
				if got, err := s.Send(w.T.Context(), m); err != nil || !strings.Contains(string(got.Raw), `"ref":"`+m.ID+`"`) {
					t.Errorf("%s: got %s and %v, want its own answer", m.Op, got.Raw, err)
				}
			}
			want := []websocketfake.Post{{ID: first, To: "lobby", Text: "final", Edits: 1, Reactions: []string{"done"}}, {ID: second, To: "lobby", Text: "gone soon", Deleted: true}}
			got := w.fake.Posts(bot)
			if len(got) != 2 || got[0].Text != "final" || got[0].Edits != 1 || !slices.Equal(got[0].Reactions, want[0].Reactions) || !got[1].Deleted {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if n := len(w.fake.Operations(bot)); n != 6 || len(w.fake.Received(bot)) != 2 || w.fake.Doubles(bot) != 0 {
				t.Errorf("got %d operations, %d messages and %d repeats, want 6, 2 and none", n, len(w.fake.Received(bot)), w.fake.Doubles(bot))
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("what the platform does not do is refused in its words", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Push(bot, 1)
			b, s := w.speaking(true)
			mine := w.sent(s, "m1", "hello")
			elsewhere := on("o0", "edit", mine, "x")
			elsewhere.Conversation = "attic"
			for i, c := range []struct {
				m    channel.Message
				want string
			}{
				{elsewhere, "is not in attic"},
				{on("o1", "edit", "nothing", "x"), "there is no message nothing"},
				{on("o2", "delete", bot+"-000001", ""), "is somebody else's"},
				{on("o3", "edit", bot+"-000001", "x"), "is somebody else's"},
				{on("o4", "unreact", mine, "eyes"), "there is no such reaction"},
			} {
				_, err := s.Send(w.T.Context(), c.m)
				wantOutcome(t, err, channel.SendRefused, c.want)
				if ops := w.fake.Operations(bot); len(ops) != i+1 || ops[i].Error == "" {
					t.Errorf("got %+v, want %d refused", ops, i+1)
				}
			}
			if _, err := s.Send(w.T.Context(), on("o5", "react", bot+"-000001", "eyes")); err != nil {
				t.Errorf("got %v, want somebody else's message to be reacted to", err)
			}
			if got := w.fake.Posts(bot); got[0].Edits != 0 || got[0].Text != "hello" {
				t.Errorf("got %+v, want it untouched", got)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("one that comes twice is counted, and done once where the platform drops the second", func(t *testing.T) {
		for _, dedupes := range []bool{false, true} {
			bubble(t, websocketfake.Options{Dedupes: func(string) bool { return dedupes }}, func(w *world) {
				b, s := w.speaking(true)
				mine := w.sent(s, "m1", "hello")
				for range 2 {
					if _, err := s.Send(w.T.Context(), on("o1", "edit", mine, "again")); err != nil {
						t.Errorf("got %v, want it taken", err)
					}
				}
				want := map[bool]int{false: 2, true: 1}[dedupes]
				if got := w.fake.Posts(bot)[0].Edits; got != want || w.fake.Doubles(bot) != 1 {
					t.Errorf("got %d edits and %d repeats, want %d and 1", got, w.fake.Doubles(bot), want)
				}
				w.Stop(b, channel.ErrDraining)
			})
		}
	})
	t.Run("an op whose answer does not come in time is unknown, one that may come again is not", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Behave(bot, websocketfake.Behaviour{NoAnswer: true})
			b, s := w.speaking(true)
			start := time.Now()
			_, err := s.Send(w.T.Context(), on("o1", "delete", "p", ""))
			wantOutcome(t, err, channel.SendUnknown, "has not answered")
			if took := time.Since(start); took != 15*time.Second {
				t.Errorf("got %s, want answer.within", took)
			}
			w.Stop(b, channel.ErrDraining)
			w.fake.Behave(bot, websocketfake.Behaviour{Busy: "slow down", After: "7"})
			w.Config["answer"].(map[string]any)["retry_after"] = "/after"
			b, s = w.speaking(true)
			_, err = s.Send(w.T.Context(), on("o2", "delete", "p", ""))
			wantOutcome(t, err, channel.SendNot, "slow down")
			if exit := channel.Classify(err); exit.After != 7*time.Second {
				t.Errorf("got %s, want 7s", exit.After)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("typing that has no id is proven by a ping", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["typing"] = `{"type":"typing","to":{{conversation}}}`
			b, s := w.speaking(true)
			before := w.lastConnection().Pings
			if _, err := s.Send(w.T.Context(), on("o1", "typing", "", "")); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
			if got := w.fake.Operations(bot); len(got) != 1 || got[0].To != "lobby" || w.lastConnection().Pings != before+1 {
				t.Errorf("got %+v after %d pings, want one of each", got, w.lastConnection().Pings-before)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
}

func TestWhatAConfigHasNoFrameForItCannot(t *testing.T) {
	var config map[string]any
	if err := json.Unmarshal(websocketfake.New(websocketfake.Options{}).Config("ws://h", bot, map[string]string{"env": "GONE"}), &config); err != nil {
		t.Fatal(err)
	}
	able := func() channel.Capabilities {
		raw, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return websocket.Spec.Able(raw)
	}
	if got := able(); got != websocket.Spec.Can {
		t.Errorf("got %+v, want all, and no secret to be asked for", got)
	}
	for _, op := range []string{"send", "edit", "delete", "react", "typing"} {
		was := config[op]
		delete(config, op)
		if can, _ := able().Does(op); can {
			t.Errorf("got that it can %s, want that its config does not say how", op)
		}
		config[op] = was
	}
	if got := websocket.Spec.Able(json.RawMessage(`{"url":`)); got != websocket.Spec.Can {
		t.Errorf("got %+v of a config that cannot be read, want what the type can", got)
	}
}
