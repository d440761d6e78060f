package postgres

import (
	"context"
	"slices"
	"sync"
)

// hub wakes those who watch, for a change made through this process or told of by
// the database.
type hub struct {
	mu       sync.Mutex // guards watchers
	watchers []chan struct{}
}

// wake never blocks: who has not looked yet is woken once for all.
func (h *hub) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (h *hub) watch(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	h.watchers = append(h.watchers, c)
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.watchers = slices.DeleteFunc(h.watchers, func(w chan struct{}) bool { return w == c })
	})
	return c
}
