package app

import (
	"context"
	"time"

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/internal/loop"
)

// sessionLook is how often a task that needs the node's session looks for it: a store
// that came back must not wait for the task's next cycle.
const sessionLook = time.Second

// turn tells who runs a task of which one node takes care for all, and whether it is
// this one: it takes what nobody holds. A node that was drained gives it up.
func (n *node) turn(ctx context.Context, task string) (h admin.TaskHolder, mine bool, err error) {
	own := n.supervisor.Status()
	for own.Session == "" {
		if err := loop.Sleep(ctx, sessionLook); err != nil {
			return h, false, err
		}
		own = n.supervisor.Status()
	}
	h, err = n.store.HoldTask(ctx, own.Session, task)
	mine = err == nil && h.Session == own.Session
	if mine && own.Drained {
		_, err = n.store.Release(ctx, own.Session, []engine.Held{{ID: engine.TaskLease(task), Epoch: h.Epoch}})
		return admin.TaskHolder{Task: task}, false, err
	}
	return h, mine, err
}
