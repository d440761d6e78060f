package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"leasehold/internal/child"
	"leasehold/internal/redact"
)

const (
	// exitLater is EX_TEMPFAIL of sysexits.h: the program cannot work now. It says as
	// little of the event as 503 does.
	exitLater = 75
	// commandGrace is what a program has between the request to end and its kill:
	// enough to remove a temporary file, and short against what a lease's next holder
	// waits.
	commandGrace = 300 * time.Millisecond
	// commandDrain is how long what a program wrote before its end may take to be read.
	// Only a process that cannot be killed keeps its pipe open for longer.
	commandDrain = 2 * time.Second
	// stderrLine is how much of a line of standard error is looked at, stderrShown how
	// much of it is logged, in bytes. The difference finds a secret that the cut would
	// leave half of.
	stderrLine, stderrShown = 16 << 10, 2000
	// stderrPerSecond and stderrAtOnce bound the lines of a target in our log: a stack
	// trace passes, a program that writes without end does not fill the disk.
	stderrPerSecond, stderrAtOnce = 10, 200
)

// commandVariables are what a program learns of its delivery beside the envelope.
// The config file's loader passes over the same names, so that a program can call
// leasehold.
const (
	varDelivery     = "LEASEHOLD_DELIVERY_ID"
	varEvent        = "LEASEHOLD_EVENT_ID"
	varType         = "LEASEHOLD_EVENT_TYPE"
	varInstallation = "LEASEHOLD_INSTALLATION"
	varAttempt      = "LEASEHOLD_ATTEMPT"
	varReplay       = "LEASEHOLD_REPLAY"
	varTarget       = "LEASEHOLD_TARGET"
)

func reservedVariables() []string {
	return []string{varDelivery, varEvent, varType, varInstallation, varAttempt, varReplay, varTarget}
}

// commandSink runs a program for each attempt. The program has the envelope on its
// standard input; how it ends is the answer. Whatever it has started ends with it.
type commandSink struct {
	target  string
	argv    []string
	env     []string
	keeper  *child.Keeper
	secrets *redact.Redactor // the values of its env
	log     *slog.Logger
	limit   *rate.Limiter
	dropped atomic.Int64 // lines that the limit kept out of the log
}

// newCommandSink makes the sink of a checked target. It runs nothing, and does not
// look whether the program is there: it may come later.
func newCommandSink(t Target, keeper *child.Keeper, environ []string, log *slog.Logger) *commandSink {
	s := &commandSink{
		target: t.Name, argv: t.Command, env: child.Basics(environ), keeper: keeper, secrets: redact.New(), log: log,
		limit: rate.NewLimiter(stderrPerSecond, stderrAtOnce),
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		value := t.Env[name].Reveal()
		s.secrets.Add(value)
		s.env = append(s.env, name+"="+value)
	}
	return s
}

// environ is the environment of one attempt.
func (s *commandSink) environ(d *Delivery) []string {
	env := slices.Clone(s.env)
	for name, value := range map[string]string{
		varDelivery: d.ID, varEvent: d.EventID, varType: d.Type, varInstallation: d.Installation,
		varAttempt: strconv.Itoa(d.Attempt), varReplay: strconv.FormatBool(d.Replay), varTarget: s.target,
	} {
		env = append(env, name+"="+strings.ReplaceAll(value, "\x00", "")) // a platform's type could have one
	}
	return env
}

// Deliver runs the program once. When ctx ends it is asked to end, and killed after
// commandGrace.
func (s *commandSink) Deliver(ctx context.Context, d Delivery) Result {
	path, err := exec.LookPath(s.argv[0])
	if err != nil {
		return s.cannotStart(err)
	}
	var r *commandRun
	end, err := s.keeper.Run(child.Program{Owner: d.ID, Path: path, Argv: s.argv, Env: s.environ(&d)}, func(c *child.Child) {
		r = s.begin(ctx, c, d)
	})
	if r == nil {
		return s.cannotStart(err)
	}
	r.finish()
	if end.Left > 0 {
		s.log.LogAttrs(ctx, slog.LevelWarn, "program left processes that do not end", slog.String("target", s.target), slog.String("delivery", d.ID), slog.Int("alive", end.Left))
	}
	if r.asked.Load() {
		if errors.Is(ctx.Err(), context.Canceled) {
			return Result{Outcome: Aborted, Reason: "broken off"}
		}
		return Result{Outcome: Slow, Reason: s.because("did not end in time", r), NextStep: stepLong}
	}
	return s.answer(end.State, r)
}

// answer classifies how the program ended by itself.
func (s *commandSink) answer(state *os.ProcessState, r *commandRun) Result {
	switch code := state.ExitCode(); {
	case code == 0:
		return Result{Outcome: Taken, Answer: ReadAnswer("", r.stdout.Bytes())}
	case code == exitLater:
		return Result{Outcome: Down, Reason: s.because("exit status 75, try later", r), NextStep: stepLater}
	case code < 0:
		return Result{Outcome: Broken, Reason: s.because(state.String(), r), NextStep: stepBroken}
	default:
		return Result{Outcome: Broken, Reason: s.because(fmt.Sprintf("exit status %d", code), r), NextStep: stepBroken}
	}
}

// cannotStart: nothing ran, which says nothing of the event.
func (s *commandSink) cannotStart(err error) Result {
	return Result{Outcome: Down, Reason: s.clean("cannot be started: " + err.Error()), NextStep: stepCommand}
}

// because adds a program's last words to how it ended.
func (s *commandSink) because(how string, r *commandRun) string {
	words := r.last
	if words == "" {
		words, _, _ = strings.Cut(strings.TrimSpace(r.stdout.String()), "\n")
	}
	if words = s.clean(words); words == "" {
		return how
	}
	return how + ": " + short(words, reasonLimit)
}

func (s *commandSink) clean(text string) string { return oneLine(s.secrets, text) }

// commandRun is a program that runs.
type commandRun struct {
	sink     *commandSink
	child    *child.Child
	asked    atomic.Bool   // we have asked it to end
	over     chan struct{} // closed when it has ended
	speaking sync.WaitGroup
	hearing  sync.WaitGroup

	// Written by who hears it, read when nobody does any more.
	stdout bytes.Buffer // its beginning
	last   string       // the last line of standard error
}

// begin speaks to the program and hears it, and watches ctx. It does not block.
func (s *commandSink) begin(ctx context.Context, c *child.Child, d Delivery) *commandRun {
	r := &commandRun{sink: s, child: c, over: make(chan struct{})}
	r.speaking.Go(func() {
		_, _ = c.Stdin.Write(d.Envelope) // a program need not read it
		_ = c.Stdin.Close()
	})
	r.speaking.Go(func() { r.watch(ctx) })
	r.hearing.Go(func() {
		// What a program answers is read like the body of an HTTP answer: to a bound,
		// and beyond it only so that the program does not wait.
		_, _ = io.CopyN(&r.stdout, c.Stdout, answerLimit+1)
		_, _ = io.Copy(io.Discard, c.Stdout)
	})
	r.hearing.Go(func() { r.hear(ctx, d.ID) })
	return r
}

// watch ends the program when ctx does.
func (r *commandRun) watch(ctx context.Context) {
	select {
	case <-r.over:
		return
	case <-ctx.Done():
	}
	r.asked.Store(true)
	r.child.Terminate()
	grace := time.NewTimer(commandGrace)
	defer grace.Stop()
	select {
	case <-r.over:
	case <-grace.C:
		r.child.Kill()
	}
}

// hear writes standard error into our log.
func (r *commandRun) hear(ctx context.Context, delivery string) {
	s := r.sink
	for lines := child.NewLines(r.child.Stderr, stderrLine); ; {
		b, _, err := lines.Next(func() {})
		if said := s.clean(string(b)); said != "" {
			r.last = said
			s.say(ctx, delivery, short(said, stderrShown))
		}
		if err != nil {
			return
		}
	}
}

// say logs a line, unless there are too many.
func (s *commandSink) say(ctx context.Context, delivery, said string) {
	if !s.limit.Allow() {
		s.dropped.Add(1)
		return
	}
	if n := s.dropped.Swap(0); n > 0 {
		s.log.LogAttrs(ctx, slog.LevelWarn, "program wrote too much", slog.String("target", s.target), slog.Int64("lines_dropped", n))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "program output",
		slog.String("target", s.target), slog.String("delivery", delivery), slog.String("stream", "stderr"), slog.String("text", said))
}

// finish waits until what the program said is heard. Its output ends with the last
// process that has it, and all of them were killed; one that does not die must not
// hold us up.
func (r *commandRun) finish() {
	close(r.over)
	_ = r.child.Stdin.Close() // ends a write that nobody reads
	r.speaking.Wait()
	heard := make(chan struct{})
	go func() { // ends with the two that it waits for
		r.hearing.Wait()
		close(heard)
	}()
	drain := time.NewTimer(commandDrain)
	defer drain.Stop()
	select {
	case <-heard:
	case <-drain.C:
	}
	_ = r.child.Stdout.Close()
	_ = r.child.Stderr.Close()
	<-heard
}
