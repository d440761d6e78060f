package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
)

func TestListSpeed(t *testing.T) {
	t.Run("ten thousand rows are listed quickly, and not read again while nothing changes", func(t *testing.T) {
		s := openTest(t, Options{})
		var rows []admin.Installation
		for n := range 10_000 {
			rows = append(rows, admin.Installation{ID: fmt.Sprintf("installation-%05d", n), Type: "websocket", Enabled: true, Config: []byte(`{"url":"wss://example.org/` + strings.Repeat("x", 80) + `"}`)})
		}
		_, _, _, err := s.Reconcile(t.Context(), rows)
		must(t, err)
		began := time.Now()
		snap, err := s.List(t.Context(), 0)
		must(t, err)
		took := time.Since(began)
		want(t, "rows", len(snap.Installations), len(rows))
		began = time.Now()
		const asked = 1000
		for range asked {
			again, err := s.List(t.Context(), snap.Version)
			must(t, err)
			want(t, "unchanged", again.Unchanged, true)
		}
		each := time.Since(began) / asked
		t.Logf("10,000 rows listed in %v, found unchanged in %v", took, each)
		if each > took/10 {
			t.Errorf("got %v for an unchanged list and %v for a whole one, want a tenth at most", each, took)
		}
	})
}
