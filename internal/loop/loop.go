// Package loop runs background work for ever: a cycle, a pause, again.
//
// It promises that a cycle which fails, panics or hangs costs that cycle and
// nothing else: it is logged once, retried with a growing wait, and never takes
// the program down. Only the end of the context given to Run ends a loop,
// whatever type of error a cycle returns. A task never runs twice at once, and
// what Status shows is always the result of the newest cycle that ended.
//
// It is no scheduler: there is no wall-clock time, no queue and no memory of
// runs beyond the process. What a cycle does, it does in steps that are safe to
// repeat.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrStopped is what Trigger returns when the loop ends before the cycle that
// was asked for.
var ErrStopped = errors.New("the task has stopped")

// Task is a piece of maintenance with its name.
type Task struct {
	Name string

	// Every is the pause between the end of a cycle and the start of the next.
	// One that is not positive counts as a second: configuration refuses it, and
	// a mistake elsewhere must not become a busy loop.
	Every time.Duration

	// Deadline is how long one cycle may take; its context ends then. Zero means
	// three times Every, and at least a minute.
	Deadline time.Duration

	// Cycle does the work once. It returns when its context ends; what it had
	// begun by then is its own to leave in a state that the next cycle can take up.
	Cycle func(ctx context.Context) error
}

// Timing is how a loop behaves between and after its cycles. A duration is taken
// as it stands, so that a test's loop runs in milliseconds; one that is zero, the
// splay excepted, is Standard's.
type Timing struct {
	Splay        time.Duration // the first cycle starts after a random part of this; zero: at once
	FirstBackoff time.Duration // the wait after one failure; doubled by each further one
	MaxBackoff   time.Duration // the longest wait after a failure
	Grace        time.Duration // from the end of a cycle's context until the cycle counts as stuck
}

// Standard is the timing that the program runs with. Two seconds of splay keep
// tasks that start together from meeting in the database. Five seconds after a
// failure suits a hiccup and five minutes one that needs a person, without
// filling the log. Ten seconds of grace let a statement that is waiting for
// SQLite's lock (five seconds) come back by itself.
func Standard() Timing {
	return Timing{Splay: 2 * time.Second, FirstBackoff: 5 * time.Second, MaxBackoff: 300 * time.Second, Grace: 10 * time.Second}
}

// Loop is one task and the memory of its runs.
type Loop struct {
	task Task
	time Timing
	log  *slog.Logger
	wake chan struct{} // holds one: end the pause
	plan chan struct{} // holds one: the pause has another length

	mu      sync.Mutex // guards what follows
	every   time.Duration
	state   state
	status  Status
	next    *outcome      // what the callers of Trigger wait for
	stuck   *outcome      // a cycle that outlived its deadline and its grace
	stopped chan struct{} // closed when Run returns
}

type state int

const (
	idle     state = iota
	once           // in Once
	running        // in Run
	finished       // Run has returned
)

// New makes a loop that stands still until Run or Once.
func New(t Task, timing Timing, log *slog.Logger) *Loop {
	if t.Every <= 0 {
		t.Every = time.Second
	}
	timing.FirstBackoff = cmp.Or(timing.FirstBackoff, Standard().FirstBackoff)
	timing.MaxBackoff = cmp.Or(timing.MaxBackoff, Standard().MaxBackoff)
	timing.Grace = cmp.Or(timing.Grace, Standard().Grace)
	return &Loop{
		task: t, every: t.Every, time: timing, log: log, wake: make(chan struct{}, 1), plan: make(chan struct{}, 1),
		status: Status{Name: t.Name}, next: newOutcome(), stopped: make(chan struct{}),
	}
}

// Run runs cycles until ctx ends, and returns nil then; its goroutines are gone.
// The exception is a cycle that ignores its context: Run gives it Timing.Grace
// and returns an error that names the task. A loop runs once: a second Run, even
// after the first has returned, is an error.
func (l *Loop) Run(ctx context.Context) error {
	if err := l.enter(running); err != nil {
		return err
	}
	defer l.finish()
	if l.time.Splay > 0 {
		l.pause(ctx, fixed(rand.N(l.time.Splay)))
	}
	for failures := 0; ctx.Err() == nil; {
		err := l.cycle(ctx)
		switch {
		case ctx.Err() != nil:
			if panicked(err) { // no shutdown explains a panic
				l.crashed(ctx, err, 0)
			}
		case err == nil:
			failures = 0
			l.pause(ctx, l.interval)
		default:
			failures++
			wait := l.backoff(failures)
			l.crashed(ctx, err, wait)
			l.pause(ctx, fixed(wait))
		}
	}
	return l.leave()
}

// Once runs one cycle and returns its error, for a command line where nothing
// runs the loop; nothing is logged. It refuses while Run or another Once runs.
func (l *Loop) Once(ctx context.Context) error {
	if err := l.enter(once); err != nil {
		return err
	}
	defer l.set(idle)
	return errors.Join(l.cycle(ctx), l.leave())
}

// backoff is the wait after so many failures in a row.
func (l *Loop) backoff(failures int) time.Duration {
	wait := l.time.FirstBackoff
	for i := 1; i < failures && wait < l.time.MaxBackoff; i++ {
		wait *= 2
	}
	return min(wait, l.time.MaxBackoff)
}

// SetEvery changes the pause between cycles, the one under way included. One that
// is not positive counts as a second.
func (l *Loop) SetEvery(d time.Duration) {
	if d <= 0 {
		d = time.Second
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.every = d
	select {
	case l.plan <- struct{}{}:
	default: // nobody has heard of the last change yet
	}
}

// interval is the pause between cycles as it is now.
func (l *Loop) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.every
}

// deadline is how long a cycle may take.
func (l *Loop) deadline() time.Duration {
	if l.task.Deadline > 0 {
		return l.task.Deadline
	}
	return max(3*l.interval(), time.Minute)
}

// pause waits for as long as length says, a trigger, or the end of ctx.
func (l *Loop) pause(ctx context.Context, length func() time.Duration) {
	for began := time.Now(); ; {
		until := began.Add(length())
		l.due(until)
		timer := time.NewTimer(time.Until(until))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
		case <-l.plan: // it has another length now
			timer.Stop()
			continue
		}
		timer.Stop()
		return
	}
}

// fixed is a length that nothing changes.
func fixed(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// crashed writes the one record of a failed cycle. A handler that panics must
// not end the loop that it reports on.
func (l *Loop) crashed(ctx context.Context, err error, wait time.Duration) {
	defer func() { _ = recover() }()
	l.log.LogAttrs(ctx, slog.LevelError, "background task crashed",
		slog.String("task", l.task.Name), slog.Any("error", err), slog.Float64("backoff_s", wait.Seconds()))
}

func (l *Loop) enter(s state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.state {
	case idle:
		l.state = s
		return nil
	case finished:
		return fmt.Errorf("run task %s: %w", l.task.Name, ErrStopped)
	default:
		return fmt.Errorf("run task %s: it is running already; trigger it instead", l.task.Name)
	}
}

func (l *Loop) set(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

func (l *Loop) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.status.NextRun = finished, time.Time{}
	close(l.stopped)
}
