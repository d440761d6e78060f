package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
	"leasehold/channel/exec/execfake"
)

// piped runs a platform's program at the other end of two pipes, in a bubble's time.
func piped(s *execfake.Server) exec.Launch {
	return func(link *channel.Link, _, _ []string) (*exec.Launched, error) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		end := make(chan exec.Ended, 2)
		kill := func() {
			_ = in.CloseWithError(io.ErrClosedPipe)
			_ = out.Close()
			end <- exec.EndedWith(-1, "signal: killed")
		}
		link.Go(func() {
			status := s.Run(execfake.Process{In: in, Out: out, Env: func(string) string { return "" }})
			_ = out.Close()
			_ = in.Close()
			select {
			case end <- exec.EndedWith(status, fmt.Sprint("exit status ", status)):
			default: // it was killed
			}
		})
		return &exec.Launched{Stdin: stdin, Stdout: stdout, Stderr: io.NopCloser(strings.NewReader("")), Terminate: func() {}, Kill: kill, Ended: end}, nil
	}
}

// room is a program in a bubble, behind whose events somebody answers.
type room struct {
	*testing.T
	*execfake.Server
	bench   *channeltest.Bench
	channel channel.Channel
}

func (r *room) said() string {
	var all []string
	for _, a := range r.Answers("") {
		what := string(a.Ack)
		if a.Ack == nil {
			what = "deferred"
		}
		all = append(all, a.ID+" "+what)
	}
	return strings.Join(all, "; ")
}

func (r *room) wants(when, want string) {
	r.Helper()
	if got := r.said(); got != want {
		r.Errorf("%s: got %q, want %q", when, got, want)
	}
	if c := r.Complaints(""); len(c) > 0 {
		r.Errorf("%s: got %q, want no complaint", when, c)
	}
}

func TestInteractions(t *testing.T) {
	t.Parallel()
	type answers = func(ctx context.Context, e channel.Event) (json.RawMessage, bool)
	run := func(t *testing.T, memory *channeltest.Memory, answer answers, f func(r *room)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := execfake.New(execfake.Options{})
			c, err := exec.SpecOver(piped(s)).Decode(json.RawMessage(`{"command":["fake"]}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			ch, err := c.Build(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := &room{T: t, Server: s, bench: channeltest.NewBench(nil, memory), channel: ch}
			r.bench.Answers = answer
			r.bench.Start(t.Context(), ch)
			synctest.Wait()
			f(r)
			_ = r.bench.Stop(channel.ErrDraining)
			r.bench.Kill()
		})
	}
	silent := func(ctx context.Context, _ channel.Event) (json.RawMessage, bool) {
		limited, cancel := context.WithTimeout(ctx, 2500*time.Millisecond)
		defer cancel()
		<-limited.Done()
		return nil, false
	}

	t.Run("the program's own answer goes to the platform's program as it is", func(t *testing.T) {
		run(t, nil, func(_ context.Context, e channel.Event) (json.RawMessage, bool) {
			return json.RawMessage(`{"modal":"` + e.ID + `"}`), true
		}, func(r *room) {
			r.Press("", "a1", "")
			synctest.Wait()
			r.wants("at once", `a1 {"modal":"a1"}`)
		})
	})

	t.Run("without one it is deferred at once", func(t *testing.T) {
		run(t, nil, nil, func(r *room) {
			r.Press("", "a1", "")
			synctest.Wait()
			r.wants("at once", "a1 deferred")
		})
	})

	t.Run("one that is late is deferred, and holds up neither events nor other answers", func(t *testing.T) {
		run(t, nil, func(ctx context.Context, e channel.Event) (json.RawMessage, bool) {
			if e.ID == "slow" {
				return silent(ctx, e)
			}
			return json.RawMessage(`1`), true
		}, func(r *room) {
			r.Press("", "slow", "")
			r.Press("", "fast", "")
			r.Push("", 5)
			time.Sleep(time.Second)
			r.wants("after a second", "fast 1")
			if got := r.Unacked(""); len(got) > 0 {
				r.Errorf("got %q not acknowledged, want all acknowledged", got)
			}
			time.Sleep(2 * time.Second)
			r.wants("after three", "fast 1; slow deferred")
		})
	})

	t.Run("more than wait at once are deferred at once", func(t *testing.T) {
		run(t, nil, silent, func(r *room) {
			for n := range 100 {
				r.Press("", fmt.Sprint("p", n), "")
			}
			time.Sleep(time.Second)
			if got := len(r.Answers("")); got != 36 {
				r.Errorf("after a second: got %d answers, want those beyond 64", got)
			}
			time.Sleep(2 * time.Second)
			if got := len(r.Answers("")); got != 100 {
				r.Errorf("after three: got %d answers, want all", got)
			}
		})
	})

	t.Run("a stop defers what waits", func(t *testing.T) {
		run(t, nil, silent, func(r *room) {
			r.Press("", "a1", "")
			synctest.Wait()
			began := time.Now()
			if err := r.bench.Stop(channel.ErrDraining); err != nil || time.Since(began) > time.Second {
				r.Errorf("got %v after %s, want the end at once", err, time.Since(began))
			}
			r.wants("then", "a1 deferred")
		})
	})

	t.Run("with the lease lost nothing is answered", func(t *testing.T) {
		run(t, nil, silent, func(r *room) {
			r.Press("", "a1", "")
			synctest.Wait()
			_ = r.bench.Stop(channel.ErrFenced)
			r.wants("then", "")
		})
	})

	t.Run("what is not stored is not answered", func(t *testing.T) {
		memory := channeltest.NewMemory()
		memory.Fail(channel.ErrStore, false)
		run(t, memory, nil, func(r *room) {
			r.Press("", "a1", "")
			time.Sleep(time.Second)
			r.wants("then", "")
		})
	})

	t.Run("what has no id is an event and no interaction", func(t *testing.T) {
		run(t, nil, nil, func(r *room) {
			r.PushLine("", "", map[string]any{"event": map[string]any{"type": "action", "interaction": true}})
			synctest.Wait()
			r.wants("then", "")
			if got := len(r.bench.Memory.Events()); got != 1 {
				r.Errorf("got %d events, want it kept", got)
			}
		})
	})

	t.Run("the follow-up address stands beside the event, and goes with the answer", func(t *testing.T) {
		run(t, nil, nil, func(r *room) {
			r.Press("", "a1", "https://platform.example/planted")
			synctest.Wait()
			e := r.bench.Memory.Events()[0]
			if e.FollowUp.Address.Reveal() != "https://platform.example/planted" || strings.Contains(string(e.Raw), "planted") {
				r.Errorf("got %q and raw %s, want the address out of raw", e.FollowUp.Address.Reveal(), e.Raw)
			}
			_, err := r.channel.(channel.Sender).Send(r.Context(), channel.Message{ID: "m", Op: "send", Conversation: "room", Text: "hi", FollowUp: e.FollowUp.Address})
			if got, want := fmt.Sprint(r.Sent(""), err), "[send room: hi to https://platform.example/planted] <nil>"; got != want {
				r.Errorf("got %s, want %s", got, want)
			}
		})
	})
}
