package hub

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestHub(t *testing.T) {
	t.Run("a watcher that has not looked yet is woken once for all", func(t *testing.T) {
		var h Hub
		c := h.Watch(t.Context())
		h.Wake()
		h.Wake()
		if got := len(c); got != 1 {
			t.Errorf("got %d values, want 1", got)
		}
	})

	t.Run("a watcher that left is forgotten, and the others are woken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var h Hub
			ctx, cancel := context.WithCancel(t.Context())
			gone, stays := h.Watch(ctx), h.Watch(t.Context())
			cancel()
			synctest.Wait()
			h.Wake()
			if len(gone) != 0 || len(stays) != 1 {
				t.Errorf("got %d values for who left and %d for who stays, want 0 and 1", len(gone), len(stays))
			}
			if got := len(h.watchers); got != 1 {
				t.Errorf("got %d watchers, want 1", got)
			}
		})
	})
}
