package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"leasehold/internal/fault"
)

// Group owns the loops of several tasks.
type Group struct {
	loops []*Loop // by name
}

// NewGroup makes a group that stands still until Run. The splay applies when
// there are several tasks. Two tasks of one name, or a task without a name or a
// cycle, are refused.
func NewGroup(timing Timing, log *slog.Logger, tasks ...Task) (*Group, error) {
	if len(tasks) < 2 {
		timing.Splay = 0
	}
	g := &Group{}
	for _, t := range tasks {
		if t.Name == "" || t.Cycle == nil {
			return nil, fmt.Errorf("task %q: a task needs a name and a cycle", t.Name)
		}
		if g.find(t.Name) != nil {
			return nil, fmt.Errorf("task %q: there are two of this name", t.Name)
		}
		g.loops = append(g.loops, New(t, timing, log))
	}
	slices.SortFunc(g.loops, func(a, b *Loop) int { return strings.Compare(a.task.Name, b.task.Name) })
	return g, nil
}

// Run runs every loop until ctx ends and waits for all of them. Its error, if
// any, names the tasks whose cycle would not stop. Like Loop.Run it runs once.
func (g *Group) Run(ctx context.Context) error {
	errs := make([]error, len(g.loops))
	var wg sync.WaitGroup
	for i, l := range g.loops {
		wg.Go(func() { errs[i] = l.Run(ctx) })
	}
	if len(g.loops) == 0 {
		<-ctx.Done() // it runs as long as one with tasks
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Status returns every task's state, sorted by name.
func (g *Group) Status() []Status {
	all := make([]Status, 0, len(g.loops))
	for _, l := range g.loops {
		all = append(all, l.Status())
	}
	return all
}

// Trigger runs the named task now, in a group that runs; see Loop.Trigger. A
// name that no task has is fault.NotFound.
func (g *Group) Trigger(ctx context.Context, name string) error {
	l := g.find(name)
	if l == nil {
		return g.unknown(name)
	}
	return l.Trigger(ctx)
}

// Once runs one cycle of the named task in a group that does not run; see
// Loop.Once. A name that no task has is fault.NotFound.
func (g *Group) Once(ctx context.Context, name string) error {
	l := g.find(name)
	if l == nil {
		return g.unknown(name)
	}
	return l.Once(ctx)
}

// SetEvery changes the pause between cycles of the named task; see Loop.SetEvery.
// A name that no task has changes nothing.
func (g *Group) SetEvery(name string, d time.Duration) {
	if l := g.find(name); l != nil {
		l.SetEvery(d)
	}
}

func (g *Group) find(name string) *Loop {
	for _, l := range g.loops {
		if l.task.Name == name {
			return l
		}
	}
	return nil
}

func (g *Group) unknown(name string) error {
	names := make([]string, 0, len(g.loops))
	for _, l := range g.loops {
		names = append(names, l.task.Name)
	}
	return fault.Errorf(fault.NotFound, "no task is called %q; there are: %s", name, strings.Join(names, ", "))
}
