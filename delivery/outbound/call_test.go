package outbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
)

// callable is a platform that takes calls.
type callable struct {
	*platform
	calls []time.Duration // when
	fails error
}

func (c *callable) Call(_ context.Context, call channel.Call) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, time.Since(epoch2000).Round(time.Millisecond))
	return json.RawMessage(fmt.Sprintf(`{"as":%q,"method":%q,"params":%s}`, call.Installation, call.Method, call.Params)), c.fails
}

func TestCall(t *testing.T) {
	lend := func(w *world) *callable {
		c := &callable{platform: w.platform}
		term := w.box.grant("a")
		w.m.Hold(term)
		w.m.Live(term, c)
		return c
	}
	call := func(w *world, installation string, within time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(w.Context(), within)
		defer cancel()
		answer, err := w.m.Call(ctx, "a", channel.Call{Installation: installation, Method: "m", Params: json.RawMessage(`[1]`)})
		return string(answer), err
	}

	bubble(t, "a call goes through the connection, as whom it is made for", func(w *world) {
		lend(w)
		got, err := call(w, "team1", time.Second)
		if want := `{"as":"team1","method":"m","params":[1]}`; got != want || err != nil {
			t.Errorf("got %s and %v, want %s", got, err, want)
		}
	})

	bubble(t, "without a lease, a connection, or one that takes calls there is none", func(w *world) {
		if _, err := call(w, "a", time.Second); !errors.Is(err, ErrNotHeld) {
			t.Errorf("got %v, want %v", err, ErrNotHeld)
		}
		term := w.box.grant("a")
		w.m.Hold(term)
		if _, err := call(w, "a", time.Second); !errors.Is(err, ErrNotConnected) {
			t.Errorf("got %v, want %v", err, ErrNotConnected)
		}
		w.m.Live(term, w.platform)
		if _, err := call(w, "a", time.Second); !errors.Is(err, ErrNoCalls) {
			t.Errorf("got %v, want %v", err, ErrNoCalls)
		}
	})

	bubble(t, "it has its turn among all that the installation sends, and none in a conversation", func(w *world) {
		w.platform.limits = channel.Limits{All: perSecond(1, 0), Chat: channel.Rate{N: 1, Per: time.Hour}}
		c := lend(w)
		first := w.post("a", "C1")
		time.Sleep(100 * time.Millisecond)
		if _, err := call(w, "a", 30*time.Second); err != nil {
			t.Error(err)
		}
		second := w.post("a", "C2")
		time.Sleep(time.Minute)
		want(w, "messages", triedAt(w, first, second), "[0s 2s]")
		want(w, "calls", fmt.Sprint(c.calls), "[1s]")
	})

	bubble(t, "when its turn would come too late it is told so at once, and not made", func(w *world) {
		w.platform.limits.All = channel.Rate{N: 1, Per: time.Hour}
		c := lend(w)
		w.post("a", "C1")
		time.Sleep(time.Second)
		began := time.Now()
		_, err := call(w, "a", 30*time.Second)
		if exit := channel.Classify(err); exit.Class != channel.ClassRateLimited || exit.After.Round(time.Second) != 59*time.Minute+59*time.Second || !strings.Contains(err.Error(), "the limit of a: 1/h") {
			t.Errorf("got %v after %s, want to be told to wait for the limit", err, exit.After)
		}
		want(w, "time taken", time.Since(began), 0)
		want(w, "calls", len(c.calls), 0)
	})

	bubble(t, "one that fails is not made again, and what the platform says of the account holds up messages", func(w *world) {
		c := lend(w)
		c.fails = channel.RateLimited(errors.New("this method is busy"), time.Minute)
		if _, err := call(w, "a", time.Second); err == nil || err.Error() != "this method is busy" {
			t.Errorf("got %v, want the platform's words", err)
		}
		free := w.post("a", "C1")
		time.Sleep(time.Second)
		c.fails = channel.RateLimitedAll(errors.New("slow down"), 30*time.Second)
		if _, err := call(w, "a", time.Second); err == nil {
			t.Error("got no error, want the platform's")
		}
		held := w.post("a", "C1")
		time.Sleep(time.Hour)
		want(w, "messages", triedAt(w, free, held), "[0s 31s]")
		want(w, "calls", len(c.calls), 2)
	})
}
