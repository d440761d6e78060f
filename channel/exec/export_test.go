package exec

import (
	"context"
	"io"
	"log/slog"
	"time"

	"leasehold/channel"
	"leasehold/internal/child"
)

// Launched is a program that a test has started in place of a process.
type Launched struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser
	Terminate      func()
	Kill           func()
	Ended          <-chan Ended
}

// Ended is how it ended.
type Ended struct {
	status int
	words  string
	left   int
}

// EndedWith is an end with an exit status; -1 is a signal's.
func EndedWith(status int, words string) Ended { return Ended{status, words, 0} }

// Launch starts one.
type Launch func(link *channel.Link, command, env []string) (*Launched, error)

type launchFunc func(link *channel.Link, p *plan) (*running, error)

func (f launchFunc) launch(link *channel.Link, p *plan) (*running, error) { return f(link, p) }

// SpecOver is the type with another way to start programs. A config that says
// quick has bounds of at most three seconds.
func SpecOver(l Launch) channel.Spec {
	launch := launchFunc(func(link *channel.Link, p *plan) (*running, error) {
		r, err := l(link, p.command, p.env)
		if err != nil {
			return nil, err
		}
		done := make(chan ended, 1)
		link.Go(func() { done <- ended(<-r.Ended) })
		return &running{
			stdin: r.Stdin, stdout: r.Stdout, stderr: r.Stderr, terminate: r.Terminate, kill: r.Kill, look: func() {}, ended: done,
		}, nil
	})
	return channel.Define(channel.Definition[Config]{
		Name: "exec", Deaf: times.dead,
		New: func(_ context.Context, c Config) (channel.Channel, error) {
			p, err := newPlan(c, nil)
			if err != nil {
				return nil, err
			}
			t := times
			if string(c.Config["quick"]) == "true" {
				t = Times{Hello: 2 * time.Second, Ready: 2 * time.Second, Ping: 700 * time.Millisecond, Dead: 2 * time.Second}.over(t)
			}
			return &program{plan: p, timing: t, launcher: launch}, nil
		},
	})
}

// Times are bounds that a test scales down.
type Times struct{ Hello, Ready, Ping, Dead, Leave, End, Drain, Exit time.Duration }

// SpecWith is the type with other bounds, and a folder for its records.
func SpecWith(environ []string, dir string, t Times) channel.Spec {
	k := child.NewKeeper()
	k.Keep(dir)
	return define(environ, t.over(times), processes{k}, prepare(k))
}

func (t Times) over(d timing) timing {
	for _, p := range []struct {
		to   *time.Duration
		from time.Duration
	}{{&d.hello, t.Hello}, {&d.ready, t.Ready}, {&d.ping, t.Ping}, {&d.dead, t.Dead}, {&d.leave, t.Leave}, {&d.end, t.End}, {&d.drain, t.Drain}, {&d.exit, t.Exit}} {
		if p.from > 0 {
			*p.to = p.from
		}
	}
	return d
}

// Prepare is the type's, over a keeper of its own.
func Prepare(ctx context.Context, dir string, log *slog.Logger) error {
	return prepare(child.NewKeeper())(ctx, dir, log)
}
