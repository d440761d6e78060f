package websocket_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/websocket/websocketfake"
)

// speaking runs one term whose messages are answered, or not when the config is
// without answers.
func (w *world) speaking(answers bool) (*channeltest.Bench, channel.Sender) {
	w.T.Helper()
	if !answers {
		delete(w.Config, "answer")
		w.Config["ignore_when"] = []any{map[string]any{"pointer": "/type", "equals": "sent"}}
	}
	ch := w.Channel()
	b := channeltest.NewBench(w.Net.DialContext, w.Memory)
	b.Start(w.T.Context(), ch)
	synctest.Wait()
	return b, ch.(channel.Sender)
}

func message(id, text string) channel.Message {
	return channel.Message{ID: id, Op: "send", Conversation: "lobby", Text: text}
}

func wantOutcome(t *testing.T, err error, want channel.SendOutcome, words string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("got no error, want %q", words)
	case channel.Outcome(err) != want || !strings.Contains(err.Error(), words):
		t.Errorf("got outcome %d (%v), want %d and %q", channel.Outcome(err), err, want, words)
	}
}

// bothWays runs f with answers and without.
func bothWays(t *testing.T, f func(w *world, answers bool)) {
	t.Helper()
	for name, answers := range map[string]bool{"answered": true, "proven by a ping": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) { f(w, answers) })
		})
	}
}

func TestAMessageIsWhatTheTemplateMakesOfIt(t *testing.T) {
	for _, c := range []struct {
		name, send string
		m          channel.Message
		want       string
	}{
		{
			"every part", `{"type":"send","id":{{id}},"to":{{conversation}},"in":{{thread}},"re":{{message_id}},"text":{{text}},"key":{{token}}}`,
			channel.Message{ID: "m1", Op: "send", Conversation: "lobby", Thread: "t", MessageID: "p1", Text: "a \"b\"\n<c>"},
			`{"type":"send","id":"m1","to":"lobby","in":"t","re":"p1","text":"a \"b\"\n<c>","key":"` + token + `"}`,
		},
		{
			"a part that the message does not have", `{"type":"send","id":"{{id}}","in":{{thread}},"re":"{{message_id}}","text":{{text}}}`,
			channel.Message{ID: "m1", Op: "send", Text: "null"},
			`{"type":"send","id":"m1","in":null,"re":"","text":"null"}`,
		},
		{
			"what looks like a placeholder stays text", `{"type":"send","id":{{id}},"text":{{text}}}`,
			channel.Message{ID: "m1", Op: "send", Text: "{{token}}"},
			`{"type":"send","id":"m1","text":"{{token}}"}`,
		},
		{
			"native is merged into it", `{"type":"send","id":{{id}},"text":{{text}},"with":{"a":1,"b":2}}`,
			channel.Message{ID: "m1", Op: "send", Native: json.RawMessage(`{"text":null,"with":{"b":12345678901234567890,"c":["<x>"]},"more":true}`)},
			`{"id":"m1","more":true,"type":"send","with":{"a":1,"b":12345678901234567890,"c":["<x>"]}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				w.Config["send"] = c.send
				w.Config["secrets"] = map[string]any{"token": map[string]string{"env": "TOKEN"}}
				b, s := w.speaking(true)
				if _, err := s.Send(w.T.Context(), c.m); err != nil {
					t.Errorf("got %v, want it taken", err)
				}
				if got := w.fake.Received(bot); len(got) != 1 || string(got[0].Frame) != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				w.Stop(b, channel.ErrDraining)
				w.NoViolations()
			})
		})
	}
}

func TestAMessageIsSentOnceTheServerSaysSo(t *testing.T) {
	t.Run("by its answer, which has an id", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(true)
			got, err := s.Send(w.T.Context(), message("m1", "hello"))
			if err != nil || got.MessageID != bot+"-sent-000001" || !strings.Contains(string(got.Raw), `"ref":"m1"`) {
				t.Errorf("got %+v, %v, want the platform's id and its answer", got, err)
			}
			if n := len(w.Kept()); n != 0 {
				t.Errorf("got %d events, want an answer to be none", n)
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("by the pong to a ping behind it", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(false)
			before := w.lastConnection().Pings
			if _, err := s.Send(w.T.Context(), message("m1", "hello")); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
			if got := w.lastConnection().Pings; got != before+1 || len(w.fake.Received(bot)) != 1 {
				t.Errorf("got %d pings and %d messages, want one of each", got-before, len(w.fake.Received(bot)))
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("many share a few pings", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(false)
			w.Net.Latency(50 * time.Millisecond)
			before := w.lastConnection().Pings
			var all sync.WaitGroup
			for n := range 200 {
				all.Go(func() {
					if _, err := s.Send(w.T.Context(), message(fmt.Sprint(n), "hello")); err != nil {
						t.Errorf("got %v, want it taken", err)
					}
				})
			}
			all.Wait()
			if got := w.lastConnection().Pings - before; got > 5 || len(w.fake.Received(bot)) != 200 {
				t.Errorf("got %d pings for %d messages, want 200 to share a few", got, len(w.fake.Received(bot)))
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("and each gets its own answer", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(true)
			w.fake.Push(bot, 500) // while events come
			var all sync.WaitGroup
			for n := range 200 {
				all.Go(func() {
					id := fmt.Sprintf("m%d", n)
					got, err := s.Send(w.T.Context(), message(id, "hello"))
					if err != nil || !strings.Contains(string(got.Raw), `"ref":"`+id+`"`) {
						t.Errorf("got %s, %v, want the answer to %s", got.Raw, err, id)
					}
				})
			}
			all.Wait()
			synctest.Wait()
			if n := len(w.Kept()); n != 500 {
				t.Errorf("got %d events, want 500", n)
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
}

func TestWhatTheServerDoesNotTake(t *testing.T) {
	for name, c := range map[string]struct {
		how     websocketfake.Behaviour
		outcome channel.SendOutcome
	}{
		"refused for ever": {websocketfake.Behaviour{Refuse: "no such\nroom " + token}, channel.SendRefused},
		"refused for now":  {websocketfake.Behaviour{Busy: "no such\nroom " + token}, channel.SendNot},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, websocketfake.Options{Token: func(string) string { return token }}, func(w *world) {
				w.fake.Behave(bot, c.how)
				b, s := w.speaking(true)
				_, err := s.Send(w.T.Context(), message("m1", "hello"))
				wantOutcome(t, err, c.outcome, "the server did not take the message: no such room [redacted]")
				w.Stop(b, channel.ErrDraining)
			})
		})
	}
	for after, want := range map[string]time.Duration{`2.5`: 2500 * time.Millisecond, `"7"`: 7 * time.Second, `1e300`: 24 * time.Hour, `0`: 0, `-1`: 0, `null`: 0, `"NaN"`: 0, `"soon"`: 0} {
		t.Run("told to wait "+after, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				w.fake.Behave(bot, websocketfake.Behaviour{Busy: "slow down", After: after})
				w.Config["answer"].(map[string]any)["retry_after"] = "/after"
				b, s := w.speaking(true)
				_, err := s.Send(w.T.Context(), message("m1", "hello"))
				wantOutcome(t, err, channel.SendNot, "slow down")
				if got := channel.Classify(err); got.After != want || (got.Class == channel.ClassRateLimited) != (want > 0) || got.All {
					t.Errorf("got %s, %s, want to wait %s", got.Class, got.After, want)
				}
				w.Stop(b, channel.ErrDraining)
			})
		})
	}
	t.Run("its limits are those of the config", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["rate"], w.Config["chat_rate"] = "30/s", "20/m burst 5"
			want := channel.Limits{All: channel.Rate{N: 30, Per: time.Second}, Chat: channel.Rate{N: 20, Per: time.Minute, Burst: 5}}
			if got := w.Channel().(channel.Limited).Limits(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	})
	t.Run("what it writes is what the config says, and plain text of any length by default", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			if got, want := w.Channel().(channel.Writer).Writes(), (channel.Writing{Markup: "plain", Unit: "bytes"}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			w.Config["markup"], w.Config["text_limit"], w.Config["text_unit"] = "mrkdwn", 4000, "characters"
			if got, want := w.Channel().(channel.Writer).Writes(), (channel.Writing{Markup: "mrkdwn", Limit: 4000, Unit: "characters"}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	})
	t.Run("without a pointer to the reason the answer is shown", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Behave(bot, websocketfake.Behaviour{Refuse: "no"})
			w.Config["answer"] = map[string]any{"id": "/ref", "refused_when": map[string]any{"pointer": "/error", "equals": "no"}}
			b, s := w.speaking(true)
			_, err := s.Send(w.T.Context(), message("m1", "hello"))
			wantOutcome(t, err, channel.SendRefused, `"ref":"m1"`)
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("what makes no frame", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(true)
			for words, m := range map[string]channel.Message{
				"knows no op":              {ID: "1", Op: "pin", Conversation: "x", Text: "y"},
				"there is nothing to edit": {ID: "1", Op: "edit", Conversation: "x", MessageID: "p"},
				"message_id is missing":    {ID: "1", Op: "delete", Conversation: "x"},
				"it is the emoji to react": {ID: "1", Op: "react", Conversation: "x", MessageID: "p"},
				"nothing to send":          {ID: "1", Op: "send", Conversation: "x"},
				"conversation is missing":  {ID: "1", Op: "send", Text: "y"},
				"has no id":                {Op: "send", Conversation: "x", Text: "y"},
				"it is no JSON object":     {ID: "1", Op: "send", Conversation: "x", Native: json.RawMessage(`[1]`)},
			} {
				_, err := s.Send(w.T.Context(), m)
				wantOutcome(t, err, channel.SendRefused, words)
			}
			if got := w.fake.Received(bot); len(got) != 0 {
				t.Errorf("got %v sent, want nothing", got)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("native has no place in a frame that is no object", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			delete(w.Config, "answer")
			for _, op := range []string{"edit", "delete", "react", "unreact", "typing"} {
				delete(w.Config, op)
			}
			w.Config["send"] = "SAY {{conversation}} {{text}}"
			b, s := w.speaking(true)
			m := message("1", "x")
			m.Native = json.RawMessage(`{}`)
			_, err := s.Send(w.T.Context(), m)
			wantOutcome(t, err, channel.SendRefused, "there is no JSON object to merge it into")
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("a config without send", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			delete(w.Config, "send")
			b, s := w.speaking(true)
			_, err := s.Send(w.T.Context(), message("1", "x"))
			wantOutcome(t, err, channel.SendRefused, "has no send")
			w.Stop(b, channel.ErrDraining)
		})
	})
}

func TestSendIsHonestAboutItsOutcome(t *testing.T) {
	t.Run("before the server has said that we are connected nothing is sent", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			w.fake.Behave(bot, websocketfake.Behaviour{NoHello: true})
			b, s := w.speaking(answers)
			_, err := s.Send(w.T.Context(), message("1", "x"))
			wantOutcome(w.T, err, channel.SendNot, "has not said that we are connected")
			_ = b.Stop(channel.ErrDraining)
		})
	})
	t.Run("after the end nothing is sent", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			b, s := w.speaking(answers)
			w.Stop(b, channel.ErrDraining)
			_, err := s.Send(w.T.Context(), message("1", "x"))
			wantOutcome(w.T, err, channel.SendNot, "has not said that we are connected")
		})
	})
	t.Run("a caller who has gone already sends nothing", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			b, s := w.speaking(answers)
			ctx, cancel := context.WithCancel(w.T.Context())
			cancel()
			_, err := s.Send(ctx, message("1", "x"))
			wantOutcome(w.T, err, channel.SendNot, "canceled")
			w.Stop(b, channel.ErrDraining)
			if got := w.fake.Received(bot); len(got) != 0 {
				w.T.Errorf("got %v sent, want nothing", got)
			}
		})
	})
	for name, end := range map[string]func(w *world, b *channeltest.Bench){
		"and nothing more is heard":   func(*world, *channeltest.Bench) {},
		"before the cut":              func(w *world, _ *channeltest.Bench) { w.Net.Cut() },
		"before the server closes":    func(w *world, _ *channeltest.Bench) { w.fake.CloseWith(bot, 1001, "") },
		"before the kill":             func(_ *world, b *channeltest.Bench) { b.Kill() },
		"before the lease is lost":    func(_ *world, b *channeltest.Bench) { _ = b.Stop(channel.ErrFenced) },
		"before the node is drained":  func(_ *world, b *channeltest.Bench) { _ = b.Stop(channel.ErrDraining) },
		"before the line is silenced": func(w *world, _ *channeltest.Bench) { w.Net.BlackholeExisting() },
	} {
		t.Run("what was written and not answered is unknown: "+name, func(t *testing.T) {
			bothWays(t, func(w *world, answers bool) {
				b, s := w.speaking(answers)
				if answers {
					w.fake.Behave(bot, websocketfake.Behaviour{NoAnswer: true})
					w.Stop(b, channel.ErrDraining)
					b, s = w.speaking(answers)
				} else {
					w.fake.Silence(bot)
				}
				start := time.Now()
				time.AfterFunc(time.Second, func() { end(w, b) })
				_, err := s.Send(w.T.Context(), message("1", "x"))
				wantOutcome(w.T, err, channel.SendUnknown, "")
				if took := time.Since(start); took > 15*time.Second {
					w.T.Errorf("got an outcome after %s, want within 15s", took)
				}
				if got := w.fake.Received(bot); len(got) != 1 {
					w.T.Errorf("got %d received, want the one that nobody knows of", len(got))
				}
				b.Kill()
				_ = b.Wait()
			})
		})
	}
	t.Run("a caller who goes leaves it unknown, and the connection alone", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			b, s := w.speaking(answers)
			w.Net.Latency(5 * time.Second)
			ctx, cancel := context.WithTimeout(w.T.Context(), time.Second)
			defer cancel()
			_, err := s.Send(ctx, message("1", "x"))
			wantOutcome(w.T, err, channel.SendUnknown, "deadline")
			w.Net.Latency(0)
			time.Sleep(time.Minute)
			if got, err := s.Send(w.T.Context(), message("2", "x")); err != nil {
				w.T.Errorf("got %v, %v, want the connection to go on", got, err)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("what cannot be written as a whole was not sent", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			b, s := w.speaking(answers)
			w.Net.Pause()
			start := time.Now()
			_, err := s.Send(w.T.Context(), message("1", strings.Repeat("y", 200<<10))) // more than the buffers hold
			wantOutcome(w.T, err, channel.SendNot, "write the message")
			if took := time.Since(start); took > 10*time.Second {
				w.T.Errorf("got an outcome after %s, want within 10s", took)
			}
			w.WantExit(b, channel.Transient, "write_timeout")
		})
	})
	t.Run("what is cut within a write was not sent", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			b, s := w.speaking(answers)
			w.Net.Pause()
			time.AfterFunc(time.Second, w.Net.Cut)
			_, err := s.Send(w.T.Context(), message("1", strings.Repeat("y", 200<<10)))
			wantOutcome(w.T, err, channel.SendNot, "write the message")
			w.WantExit(b, channel.Transient, "close_1006")
			if got := w.fake.Received(bot); len(got) != 0 {
				w.T.Errorf("got %d received, want nothing", len(got))
			}
		})
	})
	t.Run("one message is sent once at a time", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b, s := w.speaking(true)
			w.Net.Latency(time.Second)
			first := make(chan error, 1)
			go func() {
				_, err := s.Send(w.T.Context(), message("1", "x"))
				first <- err
			}()
			synctest.Wait()
			_, err := s.Send(w.T.Context(), message("1", "x"))
			wantOutcome(t, err, channel.SendNot, "on its way already")
			if err := <-first; err != nil {
				t.Errorf("got %v, want the first taken", err)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("a drain waits for an answer on its way", func(t *testing.T) {
		bothWays(t, func(w *world, answers bool) {
			b, s := w.speaking(answers)
			w.Net.Latency(100 * time.Millisecond)
			done := make(chan error, 1)
			go func() {
				_, err := s.Send(w.T.Context(), message("1", "x"))
				done <- err
			}()
			synctest.Wait()
			w.Stop(b, channel.ErrDraining)
			if err := <-done; err != nil {
				w.T.Errorf("got %v, want it taken", err)
			}
		})
	})
	t.Run("an answer that comes too late is no event where ignore_when says so", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["answer"].(map[string]any)["within"] = "1s"
			w.Config["ignore_when"] = []any{map[string]any{"pointer": "/type", "equals": "sent"}}
			b, s := w.speaking(true)
			w.Net.Latency(2 * time.Second)
			_, err := s.Send(w.T.Context(), message("1", "x"))
			wantOutcome(t, err, channel.SendUnknown, "has not answered")
			time.Sleep(10 * time.Second)
			if n := len(w.Kept()); n != 0 {
				t.Errorf("got %d events, want none", n)
			}
			w.Net.Latency(0)
			w.Stop(b, channel.ErrDraining)
		})
	})
}

func TestASenderIsSafeForConcurrentUse(t *testing.T) {
	bothWays(t, func(w *world, answers bool) {
		b, s := w.speaking(answers)
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				for i := 0; ; i++ {
					_, err := s.Send(w.T.Context(), message(fmt.Sprintf("%d-%d", n, i), "x"))
					if errors.Is(err, context.Canceled) {
						w.T.Errorf("got %v, want an outcome", err)
					}
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		w.fake.Push(bot, 1000)
		time.Sleep(time.Second)
		w.Stop(b, channel.ErrDraining)
		all.Wait()
		if len(w.Kept()) != 1000 || len(w.fake.Received(bot)) == 0 {
			w.T.Errorf("got %d events and %d messages, want both ways to work at once", len(w.Kept()), len(w.fake.Received(bot)))
		}
		w.NoViolations()
	})
}
