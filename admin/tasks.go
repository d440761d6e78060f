package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

// Task is a maintenance loop: what this process knows of it, and what is kept of
// its last run that did or failed to do something.
type Task struct {
	loop.Status
	Result string `json:"result,omitempty"` // what it last did, in a few words
	// Node is the one that runs it for all that share the store; "" = each runs it for
	// itself, or none has begun.
	Node string `json:"node,omitempty"`

	elsewhere bool // another node runs it
}

func (a *API) tasks(ctx context.Context) ([]Task, error) {
	stored, err := a.o.Store.TaskRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	holders, err := a.o.Store.TaskHolders(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	own := ""
	if a.o.Process != nil {
		own = a.o.Process.Info().Session
	}
	var tasks []Task
	if a.o.Tasks != nil {
		for _, s := range a.o.Tasks.Status() {
			tasks = append(tasks, Task{Status: s})
		}
	}
	for i := range tasks {
		t := &tasks[i]
		h := slices.IndexFunc(holders, func(h TaskHolder) bool { return h.Task == t.Name })
		if h >= 0 {
			t.Node, t.elsewhere = holders[h].Node, holders[h].Session != own
		}
		if t.elsewhere { // what the loop knows here is that it is not our turn
			t.Status = loop.Status{Name: t.Name}
		}
	}
	for _, run := range stored {
		i := slices.IndexFunc(tasks, func(t Task) bool { return t.Name == run.Task })
		if i < 0 {
			i = len(tasks)
			tasks = append(tasks, Task{Status: loop.Status{Name: run.Task}})
		}
		t := &tasks[i]
		t.Result = run.Result
		if t.Runs == 0 { // this process has not run it yet: what is stored is the news
			t.LastStart, t.LastSuccess, t.ConsecutiveFailures, t.LastError = run.LastStart, run.LastSuccess, run.Failures, run.LastError
		}
	}
	slices.SortFunc(tasks, func(x, y Task) int { return cmp.Compare(x.Name, y.Name) })
	return tasks, nil
}

func (a *API) listTasks(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	tasks, err := a.tasks(r.Context())
	if err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, Page[Task]{Items: append([]Task{}, tasks...)})
}

// ours refuses a task that another node runs for all.
func (a *API) ours(ctx context.Context, name string) error {
	tasks, err := a.tasks(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Name == name && t.elsewhere {
			return fault.Errorf(fault.Conflict, "node %s runs task %s for all nodes; run it there", t.Node, name)
		}
	}
	return nil
}

// runTask runs a task now and answers when it has ended.
func (a *API) runTask(w http.ResponseWriter, r *http.Request) error {
	if a.o.Tasks == nil {
		return fault.Wrap(fault.Temporary, errNotRunning)
	}
	name := r.PathValue("name")
	if err := a.ours(r.Context(), name); err != nil {
		return err
	}
	if err := a.o.Tasks.Trigger(r.Context(), name); err != nil {
		if fault.Is(err, fault.NotFound) {
			return fmt.Errorf("run task: %w", err)
		}
		// It is the task that failed, not the request: its error is the news.
		return fault.Errorf(fault.Temporary, "task %s: %w", name, err)
	}
	tasks, err := a.tasks(r.Context())
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Name == name {
			return a.answer(w, http.StatusOK, t)
		}
	}
	return fault.Errorf(fault.NotFound, "task %s is gone", name)
}
