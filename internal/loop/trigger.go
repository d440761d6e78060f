package loop

import (
	"context"
	"fmt"
)

// Trigger runs a cycle now, or as soon as the one that is running has ended, and
// returns its error. The cycle begins after the call, so it sees whatever the
// caller did before; callers that come together share one. A caller whose ctx
// ends stops waiting, and the cycle runs all the same. Before Run it waits for
// Run; after Run it returns ErrStopped.
//
// A cycle that fails is logged by the loop: the caller shows the error and does
// not log it again.
func (l *Loop) Trigger(ctx context.Context) error {
	o := l.ask()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("wait for task %s: %w", l.task.Name, ctx.Err())
	case <-l.stopped:
	}
	select {
	case <-o.done: // it ended, and the loop right after it
		return o.err
	default:
		return fmt.Errorf("trigger task %s: %w", l.task.Name, ErrStopped)
	}
}

func (l *Loop) ask() *outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // somebody has rung already
	}
	return l.next
}
