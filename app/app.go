// Package app is the wiring: the one place that opens a database, names channel
// types, reads the config and knows which piece is handed to which.
//
// Main is the whole program, for main.go and for embedders who add a channel type
// of their own. run.go reads top to bottom as the order in which things start;
// what was started is stopped in reverse, beside where it started. Every other
// command is a client of the handlers in package admin: over the local socket of
// the running program or, when nothing runs, in its own process over the store
// that the config names.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/child"
	"leasehold/internal/fault"
	"leasehold/internal/redact"
	"leasehold/internal/vault"
)

// Options are what a program made of this package consists of.
type Options struct {
	Types          []channel.Spec // Builtin, and those of an embedder
	Args           []string       // without the program's name
	Env            []string       // as os.Environ returns it
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Main runs the program and returns what the process is to end with: one of the
// fault.Exit codes. An interrupt or a request to terminate ends it in order.
func Main(ctx context.Context, o Options) int {
	out := &output{Writer: o.Stdout}
	o.Stdout = out
	p := &program{Options: o, redact: redact.New()}
	ctx, stop := p.heedSignals(ctx)
	defer stop()
	root := p.root()
	root.SetArgs(o.Args)
	root.SetIn(o.Stdin)
	root.SetOut(o.Stdout)
	root.SetErr(o.Stderr)
	code := p.exit(root.ExecuteContext(ctx))
	if err := out.failed(); err != nil {
		return p.exit(err)
	}
	return code
}

// program is one invocation: what it was given, and the flags that every command has.
type program struct {
	Options
	redact *redact.Redactor
	level  slog.LevelVar // of the log

	vault    atomic.Pointer[vault.Vault] // what { secret = "NAME" } refers to; nil before the store is open
	programs *child.Keeper               // those of command targets; nil before prepare

	again  <-chan struct{}  // closed by a second signal to stop
	hangup <-chan os.Signal // asks for a reload
	look   *config.Look     // the files of a run, as they were when it read them; nil = its config was made by code

	configFile string // --config
	dataDir    string // --data-dir
	newStore   bool   // run --new-store
	server     string // --server
	tokenFile  string // --token-file
	text       []byte // the whole config, of a bot that runs without a file
	json       bool   // --json
}

// signalEcho is how long after a signal another one is taken for the same: a shell,
// make or timeout sends one to the process and one to its group.
const signalEcho = time.Second

// heedSignals ends the context at the first request to stop and closes again at
// the second, for those who will not wait.
func (p *program) heedSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, again, ended := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	p.again = again
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(ended)
		var first time.Time
		for range signals {
			switch {
			case first.IsZero():
				first = time.Now()
				cancel()
			case time.Since(first) > signalEcho:
				close(again)
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-ended
		cancel()
	}
}

// exitError is an error with an exit code of its own. Without err it was shown
// already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is the caller's mistake; the text ends with what to type instead.
func usage(format string, args ...any) error {
	return &exitError{fault.ExitUsage, fmt.Errorf(format, args...)}
}

// exit shows err and returns its exit code.
func (p *program) exit(err error) int {
	if err == nil {
		return fault.ExitOK
	}
	code := fault.ExitCode(err)
	var faults config.Faults
	var own *exitError
	switch {
	case errors.As(err, &own):
		code = own.code
		if own.err == nil {
			return code
		}
	case errors.As(err, &faults):
		for _, f := range faults {
			p.hint("%s", p.redact.String(f.String()))
		}
		return fault.ExitConfig
	}
	p.hint("leasehold: %s", strings.TrimSpace(p.redact.String(err.Error())))
	return code
}

// env returns the value of an environment variable.
func (p *program) env(name string) string {
	for _, v := range p.Env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
