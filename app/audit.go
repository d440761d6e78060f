package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"leasehold/store"
)

// audit looks for events that a fence should have stopped. It goes on where its last
// cycle ended, and sees the order of epochs in what is kept: a stale write that found
// no newer event of its lease leaves nothing to see.
type audit struct {
	store store.Store
	log   *slog.Logger
	since int64
	// violations is how many this process has seen. It must stay 0.
	violations atomic.Int64
}

// run looks at what was accepted since the last cycle. A violation is a mistake of
// ours that a fence should have made impossible: it is told at once, in full.
func (a *audit) run(ctx context.Context) (string, error) {
	found := 0
	for more := true; more; {
		seen, err := a.store.Audit(ctx, a.since)
		if err != nil {
			return "", err
		}
		for _, v := range seen.Violations {
			a.log.ErrorContext(ctx, "self-audit violation", "lease", v.Lease, "seq", v.Seq, "epoch", v.Epoch, "before", v.Before)
		}
		found += len(seen.Violations)
		a.since, more = seen.Through, seen.More
	}
	if total := a.violations.Add(int64(found)); found > 0 {
		return "", fmt.Errorf("%d events stand behind a later epoch of their lease, %d since the start; please report it with the log", found, total)
	}
	return "", nil
}
