package trial

import "testing"

// Books is what a database itself knows of a store's leases.
type Books struct {
	Events, Grants          int64
	Twice                   int64 // granted while their owner lived
	StaleEvents, StaleMarks int64 // committed after their lease was another's, or free
	Deadlocks               int64
}

// Sound fails the test for whatever must not be in the books.
func (b Books) Sound(t testing.TB) {
	t.Helper()
	for what, got := range map[string]int64{
		"events committed after their lease was another's": b.StaleEvents, "marks committed after their lease was another's": b.StaleMarks,
		"leases granted while their owner lived": b.Twice, "deadlocks": b.Deadlocks,
	} {
		if got != 0 {
			t.Errorf("%s: got %d, want none", what, got)
		}
	}
}
