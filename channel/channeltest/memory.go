package channeltest

import (
	"errors"
	"slices"
	"sync"

	"leasehold/channel"
)

// Memory is the store behind one Bench after another: what an installation has
// accepted, kept over its terms. It is safe for concurrent use.
type Memory struct {
	mu         sync.Mutex // guards what follows
	events     []channel.Event
	known      map[string]bool
	cursor     []byte
	batches    int
	duplicates int
	limit      int
	fail       error
	after      bool
	gate       chan struct{} // nil: commits pass
}

// NewMemory makes an empty store without an event size limit.
func NewMemory() *Memory { return &Memory{known: map[string]bool{}} }

// Events are the events kept so far, once each, in the order of their commits.
func (m *Memory) Events() []channel.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// Has reports whether an event of this id is kept.
func (m *Memory) Has(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[id]
}

// Cursor is the cursor as last committed.
func (m *Memory) Cursor() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cursor
}

// Batches counts the commits, Duplicates the events that were kept already.
func (m *Memory) Batches() int { return m.count(&m.batches) }

// Duplicates counts the events that came again.
func (m *Memory) Duplicates() int { return m.count(&m.duplicates) }

func (m *Memory) count(n *int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *n
}

// Limit makes an event whose text, raw and payload exceed n bytes too large.
func (m *Memory) Limit(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = n
}

// Fail makes every commit fail with err until it is called with nil. With
// persisted, what fails is kept all the same, as when an answer is lost.
func (m *Memory) Fail(err error, persisted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.after = err, persisted
}

// Hold makes every commit wait until the returned function is called: a disk
// that hangs.
func (m *Memory) Hold() (release func()) {
	gate := make(chan struct{})
	m.mu.Lock()
	m.gate = gate
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.gate == gate {
			m.gate = nil
			close(gate)
		}
	}
}

// accept commits a batch, unless killed is closed while it waits.
func (m *Memory) accept(b channel.Batch, killed <-chan struct{}) error {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-killed:
			return channel.ErrFenced
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil && !m.after {
		return m.fail
	}
	var tooLarge error
	m.batches++
	for _, e := range b.Events {
		switch {
		case e.ID == "":
			return errors.New("an event has no id") // nothing of ours may do that
		case m.known[e.ID]:
			m.duplicates++
		case m.limit > 0 && len(e.Text)+len(e.Raw)+len(e.Payload) > m.limit:
			tooLarge = channel.ErrTooLarge
		default:
			m.known[e.ID] = true
			m.events = append(m.events, e)
		}
	}
	if b.Cursor != nil {
		m.cursor = slices.Clone(b.Cursor)
	}
	if m.fail != nil {
		return m.fail
	}
	return tooLarge
}
