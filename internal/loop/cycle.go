package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// outcome is the result of a cycle, to be had once it has ended.
type outcome struct {
	done chan struct{}
	err  error // read after done is closed
}

func newOutcome() *outcome { return &outcome{done: make(chan struct{})} }

func (o *outcome) settle(err error) {
	o.err = err
	close(o.done)
}

// cycle runs the task once, on a goroutine of its own so that one which ignores
// its context cannot hold up the loop, and returns the result that it recorded.
// A stuck predecessor is waited for first: a task never runs twice at once. Its
// late result is dropped, being older than the failure that it was recorded as.
func (l *Loop) cycle(ctx context.Context) error {
	if !l.join(ctx) {
		return ctx.Err()
	}
	asked := l.begin()
	deadline := l.deadline()
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	run := newOutcome()
	go call(limited, l.task.Cycle, run)

	err := l.await(limited, run)
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("gave up after %s: %w", deadline, err)
	}
	if err != nil && ctx.Err() != nil {
		l.drop()
		asked.settle(fmt.Errorf("run task %s: %w: %w", l.task.Name, ErrStopped, err))
		return err
	}
	l.record(err)
	asked.settle(err)
	return err
}

// await returns the cycle's error. A cycle that outlives its context by the grace
// is stuck, and that is the error.
func (l *Loop) await(ctx context.Context, run *outcome) error {
	select {
	case <-run.done:
		return run.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(l.time.Grace)
	defer grace.Stop()
	select {
	case <-run.done:
		return run.err
	case <-grace.C:
		l.strand(run)
		return fmt.Errorf("still running %s after it was told to stop", l.time.Grace)
	}
}

// join waits until no earlier cycle runs; false means that ctx ended first.
func (l *Loop) join(ctx context.Context) bool {
	l.mu.Lock()
	stuck := l.stuck
	l.mu.Unlock()
	if stuck == nil {
		return true
	}
	select {
	case <-stuck.done:
		l.strand(nil)
		return true
	case <-ctx.Done():
		return false
	}
}

// leave reports a cycle that is left running behind us.
func (l *Loop) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stuck == nil {
		return nil
	}
	select {
	case <-l.stuck.done:
		l.stuck = nil
		return nil
	default:
		return fmt.Errorf("task %s: a cycle ignores its context and was left running", l.task.Name)
	}
}

func (l *Loop) strand(run *outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck = run
}

var errExited = errors.New("the cycle ended its goroutine without returning")

// call runs f and settles its outcome, whatever f does.
func call(ctx context.Context, f func(context.Context) error, run *outcome) {
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: fmt.Sprint(v), stack: debug.Stack()}
		}
		run.settle(err)
	}()
	err = f(ctx)
}

// panicError is a panic as an error. Its text ends with the stack, for the log.
type panicError struct {
	value string
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.value + "\n" + string(e.stack) }

func panicked(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}
