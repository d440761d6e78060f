package loop

import (
	"errors"
	"fmt"
	"time"
)

// Status is what is known of a task, for people, programs and metrics. Times are
// the wall clock's; the zero time means never, or that nothing is planned.
type Status struct {
	Name                string    `json:"name"`
	Running             bool      `json:"running"`               // a cycle runs now
	Runs                int64     `json:"runs"`                  // cycles begun since the process started
	LastStart           time.Time `json:"last_start,omitzero"`   // when the newest cycle began
	LastSuccess         time.Time `json:"last_success,omitzero"` // when a cycle last ended without an error
	NextRun             time.Time `json:"next_run,omitzero"`     // when the pause ends by itself; zero while a cycle runs
	ConsecutiveFailures int       `json:"consecutive_failures"`  // since the last clean cycle
	LastError           string    `json:"last_error,omitempty"`  // of the newest result; empty after a clean cycle
}

// Status returns the task's state at this moment.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// begin opens a cycle and takes over everybody who asked for one until now.
func (l *Loop) begin() *outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.wake: // rung for the cycle that begins here
	default:
	}
	asked := l.next
	l.next = newOutcome()
	l.status.Running, l.status.NextRun = true, time.Time{}
	l.status.LastStart = time.Now()
	l.status.Runs++
	return asked
}

// record enters a cycle's result.
func (l *Loop) record(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Running = l.stuck != nil
	if err == nil {
		l.status.LastSuccess, l.status.ConsecutiveFailures, l.status.LastError = time.Now(), 0, ""
		return
	}
	l.status.ConsecutiveFailures++
	l.status.LastError = brief(err)
}

// drop closes a cycle that a shutdown cut short: it has no result.
func (l *Loop) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Running = l.stuck != nil
}

func (l *Loop) due(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.NextRun = t
}

// brief is an error for people: a panic without its stack, which the log has.
// fmt survives an error whose own method panics.
func brief(err error) string {
	if p, ok := errors.AsType[*panicError](err); ok {
		return "panic: " + p.value
	}
	return fmt.Sprint(err)
}
