package loop

import (
	"context"
	"time"
)

// Sleep waits for d, or less when ctx ends, and returns ctx.Err(): nil means that
// the whole of d has passed. A d that is not positive does not wait.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
