//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
)

func TestSend(t *testing.T) {
	t.Parallel()
	send := func(t *testing.T, r *term, m channel.Message) (channel.Receipt, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a busy machine takes its time
		defer cancel()
		if m.Op == "" {
			m.Op = "send"
		}
		return r.ch.(channel.Sender).Send(ctx, m)
	}

	t.Run("a receipt is what the program says", func(t *testing.T) {
		r := newStage(t).run("sends").connected()
		got, err := send(t, r, channel.Message{ID: "1", Conversation: "room", Native: json.RawMessage(`{"x":1}`)})
		if err != nil || got.MessageID != "m1" || string(got.Raw) != `{"ok":true}` {
			t.Errorf("got %+v, %v, want its receipt", got, err)
		}
		if got, err := send(t, r, channel.Message{ID: "2", Text: "twice"}); err != nil || got.MessageID != "first" {
			t.Errorf("got %+v, %v, want the first result", got, err)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("its limits are those of its hello", func(t *testing.T) {
		s := newStage(t)
		limits := func(program, extra string) channel.Limits {
			s.config["hello"] = extra
			r := s.run(program).connected()
			defer r.stops(channel.ErrDraining)
			return r.ch.(channel.Limited).Limits()
		}
		if got := limits("sends", ""); got != (channel.Limits{}) {
			t.Errorf("got %+v, want none", got)
		}
		want := channel.Limits{All: channel.Rate{N: 30, Per: time.Second}, Chat: channel.Rate{N: 1, Per: time.Second}}
		if got := limits("sends", `,"limits":{"all":"30/s","chat":"1/s"}`); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})

	t.Run("what it writes is what its hello says", func(t *testing.T) {
		s := newStage(t)
		s.config["hello"] = `,"writes":{"markup":"matrix","limit":30000,"unit":"utf16"}`
		r := s.run("sends").connected()
		want := channel.Writing{Markup: "matrix", Limit: 30000, Unit: "utf16"}
		if got := r.ch.(channel.Writer).Writes(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("many are under way at once", func(t *testing.T) {
		r := newStage(t).run("sends").connected()
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				id := fmt.Sprint(n)
				if got, err := send(t, r, channel.Message{ID: id, Text: `"message_id":"for ` + id + `"`}); err != nil || got.MessageID != "for "+id {
					t.Errorf("got %+v, %v, want the result of %s", got, err, id)
				}
			})
		}
		all.Wait()
		r.stops(channel.ErrDraining)
	})

	t.Run("what went wrong is said", func(t *testing.T) {
		r := newStage(t).run("sends").connected()
		for name, c := range map[string]struct {
			m       channel.Message
			outcome channel.SendOutcome
			words   string
		}{
			"it was not sent":          {channel.Message{Text: `"error":"no such room","outcome":"not_sent"`}, channel.SendNot, "no such room"},
			"it was refused":           {channel.Message{Text: `"error":"too long","outcome":"refused"`}, channel.SendRefused, "too long"},
			"nobody knows":             {channel.Message{Text: `"error":"timed out","outcome":"unknown"`}, channel.SendUnknown, "timed out"},
			"nobody says":              {channel.Message{Text: `"error":"timed out"`}, channel.SendUnknown, "timed out"},
			"a word of later":          {channel.Message{Text: `"outcome":"deferred"`}, channel.SendUnknown, "could not do it"},
			"told to wait":             {channel.Message{Text: `"error":"slow down","retry_after":2.5`}, channel.SendNot, "slow down"},
			"all are told to wait":     {channel.Message{Text: `"error":"slow down","retry_after":3,"scope":"all"`}, channel.SendNot, "slow down"},
			"the program cannot":       {channel.Message{Op: "react"}, channel.SendRefused, "that it can react"},
			"the native part is none":  {channel.Message{Native: json.RawMessage(`{`)}, channel.SendRefused, "native is no JSON"},
			"the program says secrets": {channel.Message{Text: `"error":"bad ` + token + `"`}, channel.SendUnknown, "bad [redacted]"},
		} {
			t.Run(name, func(t *testing.T) {
				c.m.ID = name
				_, err := send(t, r, c.m)
				if err == nil || channel.Outcome(err) != c.outcome || !strings.Contains(err.Error(), c.words) {
					t.Errorf("got %v (%d), want %q (%d)", err, channel.Outcome(err), c.words, c.outcome)
				}
				switch exit := channel.Classify(err); {
				case name == "told to wait" && (exit.After != 2500*time.Millisecond || exit.All):
					t.Errorf("got a wait of %s (of all: %t), want 2.5s of the conversation", exit.After, exit.All)
				case name == "all are told to wait" && (exit.After != 3*time.Second || !exit.All):
					t.Errorf("got a wait of %s (of all: %t), want 3s of all", exit.After, exit.All)
				}
			})
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("a call is answered with its result, or with what went wrong", func(t *testing.T) {
		s := newStage(t)
		s.config["can"] = `,"call"`
		r := s.run("sends").connected()
		call := func(method, params string) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return r.ch.(channel.Caller).Call(ctx, channel.Call{Installation: "x", Method: method, Params: json.RawMessage(params)})
		}
		for _, c := range []struct{ params, want string }{
			{`{"text":"\"result\":{\"n\":1}"}`, `{"n":1}`},
			{`{"text":"\"outcome\":\"sent\""}`, `null`},
		} {
			if got, err := call("echo", c.params); err != nil || string(got) != c.want {
				t.Errorf("%s: got %s and %v, want %s", c.params, got, err, c.want)
			}
		}
		for _, c := range []struct {
			params, words string
			outcome       channel.SendOutcome
		}{
			{`{"text":"\"error\":\"bad ` + token + `\",\"outcome\":\"refused\""}`, "bad [redacted]", channel.SendRefused},
			{`{"text":"\"error\":\"slow down\",\"retry_after\":1"}`, "slow down", channel.SendNot},
			{`{"text":"\"error\":\"lost\""}`, "lost", channel.SendUnknown},
			{`{`, "params is no JSON", channel.SendRefused},
		} {
			if _, err := call("echo", c.params); err == nil || channel.Outcome(err) != c.outcome || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: got %v, want %q", c.params, err, c.words)
			}
		}
		r.stops(channel.ErrDraining)
		if _, err := call("echo", `{}`); err == nil || channel.Outcome(err) != channel.SendNot {
			t.Errorf("got %v, want a program that has ended to be told nothing", err)
		}
		r = newStage(t).run("sends").connected()
		if _, err := call("echo", `{}`); err == nil || channel.Outcome(err) != channel.SendRefused || !strings.Contains(err.Error(), "that it can call") {
			t.Errorf("got %v, want a program that takes no calls to get none", err)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("nobody knows what a program did that died, or said nothing", func(t *testing.T) {
		s := newStage(t)
		r := s.run("sends").connected()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sent := make(chan error, 1)
		go func() {
			_, err := r.ch.(channel.Sender).Send(ctx, channel.Message{ID: "1", Op: "send", Text: "never"})
			sent <- err
		}()
		s.keeps("has read 1")
		cancel()
		if err := <-sent; !errors.Is(err, context.Canceled) || channel.Outcome(err) != channel.SendUnknown {
			t.Errorf("got %v, want the end of its context, and the outcome unknown", err)
		}
		if _, err := send(t, r, channel.Message{ID: "2", Text: "die"}); err == nil || channel.Outcome(err) != channel.SendUnknown || !strings.Contains(err.Error(), "ended before") {
			t.Errorf("got %v, want its end, and the outcome unknown", err)
		}
		r.ends(channel.Transient, "exit_9")
		if _, err := send(t, r, channel.Message{ID: "3"}); channel.Outcome(err) != channel.SendNot {
			t.Errorf("got %v, want a program that has ended to be sent nothing", err)
		}
	})

	t.Run("a program that does not read was sent nothing", func(t *testing.T) {
		s := newStage(t)
		r := s.run("reads nothing").connected()
		var all sync.WaitGroup
		outcomes := make(chan channel.SendOutcome, 5)
		for n := range 5 { // the pipe holds 64 kB, so that of the first something may have been read
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // for the first to be begun, on a busy machine, too
				defer cancel()
				_, err := r.ch.(channel.Sender).Send(ctx, channel.Message{ID: fmt.Sprint(n), Op: "send", Text: strings.Repeat("x", 100<<10)})
				if err == nil {
					t.Error("got no error, want one")
				}
				outcomes <- channel.Outcome(err)
			})
		}
		all.Wait()
		close(outcomes)
		count := map[channel.SendOutcome]int{}
		for o := range outcomes {
			count[o]++
		}
		if count[channel.SendNot] != 4 || count[channel.SendUnknown] != 1 {
			t.Errorf("got %v, want one unknown and the others not sent", count)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("a program that has closed its input is sent nothing, and is heard", func(t *testing.T) {
		s := newStage(t)
		r := s.run("closes stdin").connected()
		s.await("a refusal", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := r.ch.(channel.Sender).Send(ctx, channel.Message{ID: "1", Op: "send"})
			return channel.Outcome(err) == channel.SendNot
		})
		n := len(s.kept())
		s.await("another event", func() bool { return len(s.kept()) > n })
		r.stops(channel.ErrDraining)
	})

	t.Run("before it runs nothing is sent", func(t *testing.T) {
		ch := newStage(t).channel("sends")
		if _, err := ch.(channel.Sender).Send(t.Context(), channel.Message{ID: "1", Op: "send"}); channel.Outcome(err) != channel.SendNot {
			t.Errorf("got %v, want not sent", err)
		}
	})
}
