//go:build unix

package evidence_test

import (
	"sync"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

// Steps of the program behind the target, beside those of the platform.
const (
	stepRequest  = "request"  // a webhook has come
	stepAnswer   = "answer"   // and was taken
	stepReceived = "received" // the platform has a message
)

// steps counts what both ends see of one life of the process.
type steps struct {
	mu    sync.Mutex // guards what follows
	began time.Time
	first time.Time // when the first connection was up; zero = none yet
	count map[string]int
	all   map[string]int // over all lives
	waits []*wait
}

type wait struct {
	step string
	left int
	over chan struct{}
}

func newSteps() *steps { return &steps{count: map[string]int{}, all: map[string]int{}} }

// begin forgets the life before.
func (s *steps) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.first, s.count, s.waits = time.Now(), time.Time{}, map[string]int{}, nil
}

func (s *steps) take(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[step]++
	s.all[step]++
	if step == websocketfake.StepUpgrade && s.first.IsZero() {
		s.first = time.Now()
	}
	for _, w := range s.waits {
		if w.step != step {
			continue
		}
		if w.left--; w.left == 0 {
			close(w.over)
		}
	}
}

// nth is closed when the life has come to the nth such step from now on.
func (s *steps) nth(step string, n int) <-chan struct{} {
	w := &wait{step, n, make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = append(s.waits, w)
	return w.over
}

// back is how long it took from the begin to the first connection; false: there
// was none.
func (s *steps) back() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first.Sub(s.began), !s.first.IsZero()
}

// total counts a step over all lives.
func (s *steps) total(step string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[step]
}
