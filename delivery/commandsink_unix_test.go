//go:build unix

package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/internal/child"
)

// stage runs the programs in testdata/command.
type stage struct {
	*testing.T
	out string
	mu  sync.Mutex // guards log
	log bytes.Buffer
}

func (s *stage) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *stage) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

const plantedToken = "planted-token-1234567890"

// sink makes a target's sink as New does.
func (s *stage) sink(command ...string) Sink {
	s.Helper()
	s.out = s.TempDir()
	environ := append(os.Environ(), "HTTPS_PROXY=http://u:hunter2@proxy", "SECRET_OF_OTHERS=x")
	d, err := New(newOutbox(), []Target{{
		Name: "worker", Kind: "command", Command: command, Env: map[string]channel.Text{"OUT": channel.NewText(s.out), "TOKEN": channel.NewText(plantedToken)},
	}}, Options{Environ: environ, Log: slog.New(slog.NewTextHandler(s, nil)), Programs: child.NewKeeper()})
	if err != nil {
		s.Fatal(err)
	}
	return d.targets["worker"].sink
}

func (s *stage) program(name string) Sink {
	s.Helper()
	return s.sink("sh", filepath.Join("testdata", "command", name+".sh"))
}

// file waits for what a program writes.
func (s *stage) file(name string) string {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; {
		b, err := os.ReadFile(filepath.Join(s.out, name))
		if err == nil && len(b) > 0 {
			return string(b)
		}
		if time.Now().After(end) {
			s.Fatalf("got %v, want the program to write %s", err, name)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// wantGone is about the process whose number a program wrote.
func (s *stage) wantGone() {
	s.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(s.file("pid")))
	if err != nil {
		s.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		s.Errorf("got process %d alive, want nothing left", pid)
	}
}

var oneDelivery = Delivery{ID: "msg_1", EventID: "evt_1", Type: "message", Installation: "acme", Attempt: 3, Replay: true, Envelope: []byte(`{"type":"message"}`)}

func TestCommand(t *testing.T) {
	t.Run("a program gets the envelope and what it must know, and nothing of others", func(t *testing.T) {
		s := &stage{T: t}
		sink := s.sink("sh", "testdata/command/take.sh", "a b", "$HOME", "*")
		same(t, "result", fmt.Sprint(sink.Deliver(t.Context(), oneDelivery)), fmt.Sprint(Result{Outcome: Taken}))
		same(t, "envelope", s.file("envelope"), `{"type":"message"}`)
		same(t, "arguments, which no shell has touched", s.file("args"), "a b $HOME *\n")
		env := "\n" + s.file("env")
		for _, want := range []string{
			"LEASEHOLD_DELIVERY_ID=msg_1", "LEASEHOLD_EVENT_ID=evt_1", "LEASEHOLD_EVENT_TYPE=message", "LEASEHOLD_INSTALLATION=acme",
			"LEASEHOLD_ATTEMPT=3", "LEASEHOLD_REPLAY=true", "LEASEHOLD_TARGET=worker", "TOKEN=" + plantedToken, "PATH=",
		} {
			if !strings.Contains(env, "\n"+want) {
				t.Errorf("got %s, want %s in it", env, want)
			}
		}
		if strings.Contains(env, "PROXY") || strings.Contains(env, "OTHERS") {
			t.Errorf("got %s, want nothing that every program does not need", env)
		}
	})

	t.Run("how it ends is the answer", func(t *testing.T) {
		for script, want := range map[string]Result{
			"exit 0":                              {Outcome: Taken},
			"exit 1":                              {Outcome: Broken, Reason: "exit status 1", NextStep: stepBroken},
			"echo first >&2; echo no >&2; exit 2": {Outcome: Broken, Reason: "exit status 2: no", NextStep: stepBroken},
			"echo said; echo more; exit 2":        {Outcome: Broken, Reason: "exit status 2: said", NextStep: stepBroken},
			"echo no database >&2; exit 75":       {Outcome: Down, Reason: "exit status 75, try later: no database", NextStep: stepLater},
			"kill -9 $$":                          {Outcome: Broken, Reason: "signal: killed", NextStep: stepBroken},
			"exit 127":                            {Outcome: Broken, Reason: "exit status 127", NextStep: stepBroken},
		} {
			s := &stage{T: t}
			same(t, script, fmt.Sprintf("%+v", s.sink("sh", "-c", script).Deliver(t.Context(), oneDelivery)), fmt.Sprintf("%+v", want))
		}
	})

	t.Run("one that is not there, or may not be run, is down and says what to do", func(t *testing.T) {
		s := &stage{T: t}
		locked := filepath.Join(t.TempDir(), "locked")
		if err := os.WriteFile(locked, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		broken := filepath.Join(t.TempDir(), "broken")
		if err := os.WriteFile(broken, []byte("no program\n"), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
		for _, program := range []string{"no-such-program-anywhere", "/no/such/program", locked, broken, t.TempDir()} {
			r := s.sink(program).Deliver(t.Context(), oneDelivery)
			if r.Outcome != Down || !strings.HasPrefix(r.Reason, "cannot be started: ") || r.NextStep != stepCommand {
				t.Errorf("%s: got %+v, want down", program, r)
			}
		}
	})

	t.Run("what it leaves running ends with it and holds nobody up", func(t *testing.T) {
		s := &stage{T: t}
		same(t, "outcome", s.program("leave").Deliver(t.Context(), oneDelivery).Outcome, Taken)
		s.wantGone()
	})

	t.Run("a time-out ends it with its children", func(t *testing.T) {
		s := &stage{T: t}
		sink := s.program("wait")
		var r Result
		for d := time.Second; d < time.Minute && !strings.Contains(r.Reason, "waiting"); d *= 2 { // a loaded machine starts it late
			ctx, cancel := context.WithTimeout(t.Context(), d)
			r = sink.Deliver(ctx, oneDelivery)
			cancel()
		}
		same(t, "result", fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", Result{Outcome: Slow, Reason: "did not end in time: waiting for the other program", NextStep: stepLong}))
		s.wantGone()
	})

	t.Run("one that ignores the request to end is killed with its children", func(t *testing.T) {
		s := &stage{T: t}
		sink := s.program("stubborn")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan Result)
		go func() { done <- sink.Deliver(ctx, oneDelivery) }()
		s.file("pid")
		cancel()
		same(t, "outcome", (<-done).Outcome, Aborted)
		s.wantGone()
	})

	t.Run("the success of one that was asked to end is not believed", func(t *testing.T) {
		s := &stage{T: t}
		sink := s.program("polite")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan Result)
		go func() { done <- sink.Deliver(ctx, oneDelivery) }()
		s.file("pid")
		cancel()
		same(t, "outcome", (<-done).Outcome, Aborted)
	})

	t.Run("a flood on both streams is bounded, and no secret is in it", func(t *testing.T) {
		s := &stage{T: t}
		r := s.program("flood").Deliver(t.Context(), oneDelivery)
		same(t, "result", fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", Result{Outcome: Broken, Reason: "exit status 4: the end of it", NextStep: stepBroken}))
		log := s.logged()
		if n := strings.Count(log, "program output"); n < stderrAtOnce || n > 2*stderrAtOnce && len(log) > 1<<20 {
			t.Errorf("got %d lines of the program in %d bytes, want about %d", n, len(log), stderrAtOnce)
		}
		if strings.Contains(log, plantedToken) || !strings.Contains(log, "line 0 of [redacted]") {
			t.Errorf("got %.300s, want the token taken out", log)
		}
	})

	t.Run("a program that reads nothing of a large envelope has taken it all the same", func(t *testing.T) {
		s := &stage{T: t}
		large := oneDelivery
		large.Envelope = bytes.Repeat([]byte("x"), 1<<20)
		same(t, "outcome", s.program("deaf").Deliver(t.Context(), large).Outcome, Taken)
		r := s.program("early").Deliver(t.Context(), large)
		same(t, "result", fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", Result{Outcome: Broken, Reason: "exit status 3: [redacted] is no good", NextStep: stepBroken}))
	})

	t.Run("many run at the same time", func(t *testing.T) {
		s := &stage{T: t}
		sink := s.sink("sh", "-c", "cat >/dev/null; sleep 0.2; exit $((LEASEHOLD_ATTEMPT))")
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				d := oneDelivery
				d.ID, d.Attempt = fmt.Sprintf("msg_%d", i), i
				if r := sink.Deliver(t.Context(), d); i == 0 && r.Outcome != Taken || i > 0 && r.Reason != fmt.Sprintf("exit status %d", i) {
					t.Errorf("got %+v for %d, want its own status", r, i)
				}
			})
		}
		all.Wait()
	})
}

func TestCommandTarget(t *testing.T) {
	_, err := New(newOutbox(), []Target{
		{Name: "none", Kind: "command"},
		{Name: "near", Kind: "command", Command: []string{"./run.sh"}, URL: "http://x"},
		{Name: "ours", Kind: "command", Command: []string{"sh"}, Env: map[string]channel.Text{"LEASEHOLD_ATTEMPT": {}, "A=B": {}}},
	}, Options{})
	for _, want := range []string{
		`target "none": command: is empty`, `target "near": command: "./run.sh" depends on the folder`, `target "near": url: a command target has none`,
		`target "ours": env: LEASEHOLD_ATTEMPT is set by Leasehold`, `target "ours": env: "A=B" is no name`,
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want it to say %s", err, want)
		}
	}
}
