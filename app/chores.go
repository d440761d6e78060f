package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/engine"
	"leasehold/internal/loop"
	"leasehold/store"
	"leasehold/store/maintenance"
)

// chores are the maintenance tasks, each a loop of its own. What a cycle goes by it
// takes from the config of that moment. n is the node that runs; nil = nothing does.
func chores(current func() *config.Config, s store.Store, n *node, log *slog.Logger) (*loop.Group, error) {
	self := &audit{store: s, log: log}
	tasks := []*chore{
		{name: "sweeper", once: true, every: func(c *config.Config) time.Duration { return c.Tasks.Sweeper.Every.Std() }, do: func(ctx context.Context) (string, error) {
			if n != nil && n.clockHeld() != "" {
				return "", nil // what is past its retention cannot be told from what is not
			}
			swept, err := s.Sweep(ctx, retention(current()))
			return swept.String(), err
		}},
		{name: "upkeep", every: func(c *config.Config) time.Duration { return c.Tasks.Upkeep.Every.Std() }, do: func(ctx context.Context) (string, error) {
			tended, err := s.Upkeep(ctx)
			if n != nil && err == nil {
				n.meter.tended.Store(&tended)
			}
			return tendedWords(tended), err
		}},
		{name: "self-audit", once: true, every: func(c *config.Config) time.Duration { return c.Tasks.SelfAudit.Every.Std() }, do: self.run},
		{name: pingTask, every: func(*config.Config) time.Duration { return pingEvery }, do: n.ping},
	}
	if b, ok := s.(store.Backer); ok || s == nil {
		tasks = append(tasks, backupChore(current, b, n))
	}
	if n != nil {
		tasks = append(tasks, n.reloader.chores()...)
		n.chores, n.audit = tasks, self
	}
	var all []loop.Task
	for _, t := range tasks {
		t.store = s
		if n != nil {
			t.told = n.taskEnded
			if t.once && !s.Sole() {
				t.turn = n.turn
			}
		}
		all = append(all, loop.Task{Name: t.name, Every: t.every(current()), Cycle: t.cycle})
	}
	g, err := loop.NewGroup(loop.Standard(), log, all...)
	if err != nil {
		return nil, fmt.Errorf("list the tasks: %w", err)
	}
	return g, nil
}

// retention is how long the sweeper keeps what is done with.
func retention(c *config.Config) maintenance.Retention {
	return maintenance.Retention{
		Events: c.Retention.Events.Std(), Dead: c.Retention.Dead.Std(), Messages: c.Retention.Messages.Std(), Audit: c.Retention.Audit.Std(),
		Batch: c.Tasks.Sweeper.Batch,
	}
}

// chore is a task whose failures and work done are kept. A cycle that had nothing
// to do writes nothing: at rest the disk rests.
type chore struct {
	name  string
	once  bool // one node runs it for all that share the store
	every func(*config.Config) time.Duration
	do    func(context.Context) (done string, err error) // done: "" = there was nothing to do
	store admin.Store
	told  func(name string, err error)                                                      // of each result; nil = nobody
	turn  func(ctx context.Context, task string) (h admin.TaskHolder, mine bool, err error) // nil = it is always ours

	failures int // in a row; one cycle at a time
}

// saveWithin bounds the note of a run that its own context may have ended.
const saveWithin = 5 * time.Second

func (t *chore) cycle(ctx context.Context) error {
	run := admin.TaskRun{Task: t.name, LastStart: time.Now()}
	if t.turn != nil {
		h, mine, err := t.turn(ctx, t.name)
		if err != nil || !mine {
			t.failures = 0 // whoever runs it counts his own
			return err
		}
		run.Session, run.Epoch = h.Session, h.Epoch
	}
	done, err := t.do(ctx)
	if ctx.Err() != nil && err != nil {
		return err // a shutdown: the loop tells it from a failure
	}
	if t.told != nil {
		t.told(t.name, err)
	}
	failed := t.failures > 0
	switch {
	case err != nil:
		t.failures++
		run.LastError = err.Error()
	default:
		t.failures = 0
		run.LastSuccess = time.Now()
	}
	if err == nil && done == "" && !failed {
		return nil
	}
	run.Failures, run.Result = t.failures, done
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveWithin)
	defer cancel()
	serr := t.store.SaveTaskRun(saving, run)
	if errors.Is(serr, engine.ErrFenced) {
		return err // another node has it by now; its work is safe to repeat, its note is the one that counts
	}
	if serr != nil && err == nil {
		return fmt.Errorf("note that %s did its work: %w", t.name, serr)
	}
	return err
}

// tendedWords are what an upkeep did beside looking; "" for nothing.
func tendedWords(t maintenance.Tended) string {
	switch {
	case t.Vacuumed > 0 && t.Checked:
		return fmt.Sprintf("gave back %d pages, checked the whole file", t.Vacuumed)
	case t.Vacuumed > 0:
		return fmt.Sprintf("gave back %d pages", t.Vacuumed)
	case t.Checked:
		return "checked the whole file"
	}
	return ""
}
