// Package hub wakes those who watch a store, for a change that they should act on at
// once. It keeps nothing: whoever watches looks for itself.
package hub

import (
	"context"
	"slices"
	"sync"
)

// Hub is who watches. The zero value is nobody; it is safe for concurrent use.
type Hub struct {
	mu       sync.Mutex // guards watchers
	watchers []chan struct{}
}

// Wake never blocks: who has not looked yet is woken once for all.
func (h *Hub) Wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Watch returns a channel that holds a value after a Wake. It ends with ctx and is
// never closed.
func (h *Hub) Watch(ctx context.Context) <-chan struct{} {
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
