package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"leasehold/internal/fault"
)

func TestKinds(t *testing.T) {
	full := fault.Errorf(fault.Full, "write %s: no space", "x")
	wrapped := fmt.Errorf("accept: %w", full)
	for _, c := range []struct {
		name   string
		err    error
		kind   fault.Kind
		store  bool
		exit   int
		status int
	}{
		{"an error without a kind is internal", errors.New("odd"), fault.Internal, false, 1, 500},
		{"a kind survives wrapping", wrapped, fault.Full, true, 75, 503},
		{"the outermost kind counts", fault.Wrap(fault.Invalid, full), fault.Invalid, false, 78, 422},
		{"a busy store is slow, not broken", fault.Errorf(fault.Busy, "locked"), fault.Busy, false, 75, 503},
		{"a newer store is a matter of configuration", fault.Errorf(fault.Newer, "v9"), fault.Newer, true, 78, 500},
		{"what is not there is not found", fault.Errorf(fault.NotFound, "none"), fault.NotFound, false, 1, 404},
		{"what is denied is denied", fault.Errorf(fault.Denied, "no"), fault.Denied, false, 77, 403},
		{"a conflict is one", fault.Errorf(fault.Conflict, "twice"), fault.Conflict, false, 1, 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fault.Of(c.err); got != c.kind {
				t.Errorf("got kind %v, want %v", got, c.kind)
			}
			if got := fault.Store(c.err); got != c.store {
				t.Errorf("got store %v, want %v", got, c.store)
			}
			if got := fault.ExitCode(c.err); got != c.exit {
				t.Errorf("got exit code %d, want %d", got, c.exit)
			}
			if got := fault.Status(c.err); got != c.status {
				t.Errorf("got status %d, want %d", got, c.status)
			}
		})
	}
	t.Run("nil stays nil", func(t *testing.T) {
		if err := fault.Wrap(fault.Full, nil); err != nil || fault.ExitCode(nil) != 0 {
			t.Errorf("got %v and exit code %d, want nil and 0", err, fault.ExitCode(nil))
		}
	})
	t.Run("an error reads as its cause", func(t *testing.T) {
		if got := wrapped.Error(); got != "accept: write x: no space" {
			t.Errorf("got %q", got)
		}
	})
}
