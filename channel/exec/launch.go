package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"leasehold/channel"
	"leasehold/internal/child"
)

// launcher starts programs.
type launcher interface {
	// launch returns once the program runs. What it needs to run meanwhile it does in
	// goroutines of the link.
	launch(link *channel.Link, p *plan) (*running, error)
}

// running is a program that runs. Neither terminate nor kill blocks.
type running struct {
	stdin          io.WriteCloser
	stdout, stderr io.ReadCloser
	terminate      func() // ask it to end
	kill           func()
	look           func()       // now and then: who belongs to it
	ended          <-chan ended // one answer, once nothing of it runs
}

// ended is how a program ended.
type ended struct {
	status int    // its exit status; -1: a signal ended it
	words  string // the same for people
	left   int    // processes of it that do not die
}

// processes starts real programs.
type processes struct{ keeper *child.Keeper }

func (l processes) launch(link *channel.Link, p *plan) (*running, error) {
	path, err := exec.LookPath(p.command[0])
	if err != nil {
		return nil, p.cannotStart(err)
	}
	type outcome struct {
		*child.Child
		err error
	}
	began, done := make(chan outcome, 2), make(chan ended, 1) // of began only the first counts
	link.Go(func() {
		err := errors.New("the program was not started") // a panic, which ends the term
		defer func() { began <- outcome{nil, err} }()
		defer close(done)
		end, failed := l.keeper.Run(child.Program{
			Owner: link.Installation(), Path: path, Argv: p.command, Env: append([]string{nameVariable + "=" + link.Installation()}, p.env...),
		}, func(c *child.Child) { began <- outcome{c, nil} })
		if err = failed; err == nil {
			done <- endOf(end)
		}
	})
	switch c := <-began; {
	case c.err == nil:
		return &running{
			stdin: c.Stdin, stdout: c.Stdout, stderr: c.Stderr, terminate: c.Terminate, kill: c.Kill, look: l.keeper.Look, ended: done,
		}, nil
	case errors.Is(c.err, child.ErrLeft):
		return nil, channel.Failed("left_behind", c.err)
	case errors.Is(c.err, os.ErrNotExist), errors.Is(c.err, os.ErrPermission):
		return nil, p.cannotStart(c.err)
	default:
		return nil, channel.Failed("start", c.err)
	}
}

func endOf(e child.End) ended {
	if e.State == nil {
		return ended{status: -1, words: "nobody knows how", left: e.Left}
	}
	code := e.State.ExitCode()
	if code < 0 {
		return ended{status: -1, words: e.State.String(), left: e.Left}
	}
	return ended{status: code, words: fmt.Sprintf("exit status %d", code), left: e.Left}
}
