// Package exec is the way out for everything that has no type of its own: a
// program in any language that speaks JSON lines on its standard streams is run as
// a channel, one program for each installation and term. docs/exec.md is the
// protocol.
//
// It promises the program that an acknowledged event is stored, and that the
// cursor it starts with is the one that was stored with the last of them. It
// promises everybody else that a program runs only under its lease: it is killed
// with all that it has started when the lease is lost, when this process dies, and
// at the latest 0.8 s after it was asked to stop (see leasehold/internal/child for
// what each system can keep). It never runs a program a second time by itself.
//
// It does not watch what the program does on the network: the program dials by
// itself, and our proxy, private CA and fence do not apply to its sockets.
package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"leasehold/channel"
	"leasehold/internal/child"
)

// Spec makes the type, under the name exec. Of environ, as os.Environ returns it,
// a program gets only what every program needs (PATH, HOME, TZ and the like): the
// rest may hold the secrets of others.
func Spec(environ []string) channel.Spec {
	keeper := child.NewKeeper()
	return define(environ, times, processes{keeper}, prepare(keeper))
}

func define(environ []string, t timing, l launcher, prepare func(context.Context, string, *slog.Logger) error) channel.Spec {
	return channel.Define(channel.Definition[Config]{
		Name:     "exec",
		Summary:  "Any program that speaks JSON lines on its standard streams.",
		Can:      channel.Capabilities{Send: true, Edit: true, Delete: true, React: true, Typing: true, Threads: true, Native: true, Call: true},
		Deaf:     t.dead,
		FileOnly: true,
		Prepare:  prepare,
		New: func(_ context.Context, c Config) (channel.Channel, error) {
			p, err := newPlan(c, environ)
			if err != nil {
				return nil, err
			}
			return &program{plan: p, timing: t, launcher: l}, nil
		},
	})
}

// prepare ends what an earlier process has left running.
func prepare(k *child.Keeper) func(context.Context, string, *slog.Logger) error {
	return func(ctx context.Context, dir string, log *slog.Logger) error {
		k.Keep(dir)
		left, err := k.Clear()
		for _, l := range left {
			log.WarnContext(ctx, "programs of an earlier process killed", "installation", l.Owner, "killed", l.Killed, "alive", l.Alive)
		}
		return err
	}
}

// timing are the bounds on a program.
type timing struct {
	hello time.Duration // from its start to hello
	ready time.Duration // from hello, or the last status, to ready
	ping  time.Duration // between two pings
	dead  time.Duration // silence after which it is given up
	leave time.Duration // from stop to the request to end
	end   time.Duration // from that to the kill
	drain time.Duration // for what it has written when it has ended
	exit  time.Duration // from the end of its output to its own: what it says by its status is worth the wait
}

// times are those of production. A stop is over within a second, so that a
// restart is not noticed: what a program wants to say goodbye to it does in
// half of that, which is a round trip to anywhere and back.
//
//nolint:gochecknoglobals // a table, never changed
var times = timing{
	hello: 10 * time.Second, ready: 30 * time.Second, ping: 30 * time.Second, dead: 90 * time.Second,
	leave: 500 * time.Millisecond, end: 300 * time.Millisecond, drain: time.Second, exit: 5 * time.Second,
}

// program is a Channel: one run of a program.
type program struct {
	plan     *plan
	timing   timing
	launcher launcher
	session  atomic.Pointer[session] // once it runs
}

var (
	_ channel.Caller  = (*program)(nil)
	_ channel.Limited = (*program)(nil)
	_ channel.Writer  = (*program)(nil)
)

// Run starts the program and hears it until ctx or the program ends.
func (p *program) Run(ctx context.Context, link *channel.Link) error {
	r, err := p.launcher.launch(link, p.plan)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end that was asked for is none of ours
		}
		return err
	}
	s := newSession(p.plan, p.timing, link, r)
	link.OnKill(r.kill)
	p.session.Store(s)
	return s.run(ctx)
}

// Limits are those that the program told in its hello.
func (p *program) Limits() channel.Limits {
	s := p.session.Load()
	if s == nil {
		return channel.Limits{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits
}

// Writes is what the program told in its hello.
func (p *program) Writes() channel.Writing {
	s := p.session.Load()
	if s == nil {
		return channel.Writing{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Send has the program send a message.
func (p *program) Send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	s := p.session.Load()
	if s == nil {
		return channel.Receipt{}, channel.NotSent(errors.New("the program does not run"))
	}
	return s.send(ctx, m)
}

// cannotStart classifies why a program could not be started.
func (p *plan) cannotStart(err error) error {
	return channel.Rejected("command", fmt.Errorf("command: %w; check that it is installed and may be run", err))
}
