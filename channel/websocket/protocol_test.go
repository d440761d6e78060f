package websocket_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/websocket/websocketfake"
)

func TestWhatIsSaidFirst(t *testing.T) {
	t.Run("login, then the subscriptions", func(t *testing.T) {
		bubble(t, websocketfake.Options{Login: true, Token: func(string) string { return token }}, func(w *world) {
			w.Config["subscribe"] = []string{`{"type":"subscribe","to":"x"}`, `{"type":"subscribe","to":"y"}`}
			b := w.connected()
			want := []string{`{"type":"login","token":"` + token + `"}`, `{"type":"subscribe","to":"x"}`, `{"type":"subscribe","to":"y"}`}
			if got := w.fake.Heard(bot); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("subscriptions wait for subscribe_when", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Behave(bot, websocketfake.Behaviour{NoHello: true})
			w.Config["subscribe"] = []string{`{"type":"subscribe"}`}
			w.Config["subscribe_when"] = map[string]any{"pointer": "/type", "equals": "authenticated"}
			b := w.start()
			time.Sleep(5 * time.Second)
			if got := w.fake.Heard(bot); len(got) != 0 {
				t.Errorf("got %q before the frame that asks for it, want nothing", got)
			}
			for range 2 {
				w.fake.Say(bot, `{"type":"authenticated"}`)
				synctest.Wait()
			}
			if got := w.fake.Heard(bot); len(got) != 1 {
				t.Errorf("got %q, want one subscription, once", got)
			}
			w.fake.Say(bot, `{"type":"hello"}`)
			synctest.Wait()
			if len(w.Kept()) != 0 || len(b.Readies()) != 1 {
				t.Errorf("got %q kept and %d readies, want no event and ready", w.Kept(), len(b.Readies()))
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("a subprotocol and headers go with the handshake", func(t *testing.T) {
		bubble(t, websocketfake.Options{Token: func(string) string { return token }}, func(w *world) {
			w.Config["subprotocol"] = "fake"
			w.Config["headers"] = map[string]any{"Authorization": "Bearer {{token}}", "X-Plain": "yes", "Host": "other.test"}
			b := w.connected()
			w.Stop(b, channel.ErrDraining)
		})
	})
}

func TestResume(t *testing.T) {
	bubble(t, websocketfake.Options{Fire: true}, func(w *world) {
		b := w.connected()
		if got := w.fake.Heard(bot); len(got) != 0 {
			t.Errorf("got %q said at first, want no resume before there is a cursor", got)
		}
		w.fake.Push(bot, 5)
		synctest.Wait()
		w.Stop(b, channel.ErrDraining)

		// What is sent into a dead line is lost, but for the resume.
		b = w.connected()
		w.Net.Pause()
		w.fake.Push(bot, 5)
		time.Sleep(time.Second)
		w.Net.Cut()
		w.Net.Resume()
		w.WantExit(b, channel.Transient, "close_1006")
		b = w.connected()
		synctest.Wait()
		if got := w.fake.Heard(bot); !slices.Contains(got, `{"type":"resume","after":"a-000005"}`) {
			t.Errorf("got %q said, want a resume after the last event stored", got)
		}
		if got := w.Kept(); len(got) != 10 {
			t.Errorf("got %q, want ten events", got)
		}
		w.Stop(b, channel.ErrDraining)

		// The cursor of another address is none here.
		w.Config["url"] = "ws://" + platform + "/bot/b"
		b = w.connected()
		if got := w.fake.Heard("b"); len(got) != 0 {
			t.Errorf("got %q said to another address, want no resume there", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestResumeInTheURL(t *testing.T) {
	bubble(t, websocketfake.Options{Fire: true}, func(w *world) {
		delete(w.Config, "resume")
		w.Config["url"] = "ws://" + platform + "/bot/a?since={{cursor}}"
		b := w.connected()
		w.fake.Push(bot, 3)
		synctest.Wait()
		w.Net.Pause()
		w.fake.Push(bot, 3)
		time.Sleep(time.Second)
		w.Net.Cut()
		w.Net.Resume()
		w.WantExit(b, channel.Transient, "close_1006")
		b = w.connected()
		synctest.Wait()
		if got := w.Kept(); len(got) != 6 {
			t.Errorf("got %q, want six events", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestTheCursorMovesWithItsEvents(t *testing.T) {
	bubble(t, websocketfake.Options{Fire: true}, func(w *world) {
		b := w.connected()
		w.fake.Push(bot, 2)
		synctest.Wait()
		if got := string(w.Memory.Cursor()); !strings.Contains(got, `"at":"a-000002"`) {
			t.Errorf("got cursor %s, want the last event", got)
		}
		w.Memory.Fail(channel.ErrStore, false)
		w.fake.Push(bot, 2)
		_ = b.Wait()
		if got := string(w.Memory.Cursor()); !strings.Contains(got, `"at":"a-000002"`) {
			t.Errorf("got cursor %s after a failed commit, want it where it was", got)
		}
	})
}

func TestACursorIsNotStoredWhereNothingResumes(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		w.fake.Push(bot, 2)
		synctest.Wait()
		if got := w.Memory.Cursor(); got != nil {
			t.Errorf("got cursor %s, want none to write", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestAnAcknowledgementMayNameWhatTheFrameHolds(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		w.Config["ack"] = `{"type":"ack","id":{{/envelope/id}}}`
		w.Config["pointers"] = map[string]any{"id": "/event"}
		b := w.connected()
		w.fake.PushFrame(bot, "env-1", []byte(`{"envelope":{"id":"env-1"},"event":"e1"}`))
		w.fake.Say(bot, `{"event":"without an envelope"}`)
		synctest.Wait()
		if got := w.fake.Acked(bot); !slices.Equal(got, []string{"env-1"}) {
			t.Errorf("got %q acknowledged, want the envelope", got)
		}
		if got := w.Kept(); !slices.Equal(got, []string{"e1", "without an envelope"}) {
			t.Errorf("got %q kept, want both by the event's id", got)
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
	})
}

func TestARedeliveredEventIsAcknowledgedAgainAndKeptOnce(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		for range 3 {
			w.fake.Say(bot, `{"type":"message","id":"a-000001"}`)
		}
		w.fake.Push(bot, 1)
		synctest.Wait()
		if got := w.Kept(); !slices.Equal(got, []string{"a-000001"}) || w.Memory.Duplicates() != 3 {
			t.Errorf("got %q and %d duplicates, want one event and three", got, w.Memory.Duplicates())
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestManyEventsOverManyCuts(t *testing.T) {
	bubble(t, websocketfake.Options{Window: 50}, func(w *world) {
		w.fake.Push(bot, 2000)
		for i := range 40 {
			b := w.start()
			time.Sleep(time.Duration(i) * time.Millisecond)
			w.Net.Latency(time.Duration(i%7) * time.Millisecond)
			synctest.Wait()
			if i%2 == 0 {
				w.Net.Cut()
				time.Sleep(time.Second)
			} else {
				b.Kill()
			}
			_ = b.Stop(channel.ErrDraining)   // it may have dialled after the cut
			time.Sleep(20 * time.Millisecond) // the platform hears of the end
			if len(w.Kept()) < w.fake.AckedCount(bot) {
				t.Fatalf("got %d kept and %d acknowledged, want nothing acknowledged that is not kept", len(w.Kept()), w.fake.AckedCount(bot))
			}
		}
		w.Net.Latency(0)
		b := w.connected()
		if got := w.Kept(); len(got) != 2000 || w.fake.AckedCount(bot) != 2000 || !slices.IsSorted(got) {
			t.Errorf("got %d kept and %d acknowledged, want 2000 once each, in order", len(got), w.fake.AckedCount(bot))
		}
		if got := w.fake.MaxConcurrent(bot); got != 1 {
			t.Errorf("got %d connections at once, want one", got)
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
	})
}
