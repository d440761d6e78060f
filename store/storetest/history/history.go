// Package history records what clients of a store asked and were told, and has a
// checker look for an order of those calls in which every answer is right.
//
// The nodes of a run share a database. Each has several clients that claim, accept,
// mark, release, renew and reap at random, pause for longer than their session
// lasts, come back with leases that are another's by then, and give up calls whose
// outcome they never learn. Then, lease by lease, porcupine searches an order that
// keeps two rules: a call that returned before another began comes before it, and
// each answer follows from the calls before it by the rules in state. When there is
// no such order, the store has broken a promise that no single call shows.
//
// The calls are made at real speed on a real database: a seed chooses what is asked,
// not what happens. A history that fails is written into a file, for a browser.
package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"leasehold/store/storetest"
)

// Harness is one seed's database, empty.
type Harness struct {
	// Open opens it as one more node. What it returns may be closed more than once.
	Open func() storetest.Store
	// Fail breaks the next commit of a store that Open returned: before it takes
	// effect, or after. nil = nothing fails.
	Fail func(s storetest.Store, persisted bool)
	// Cut ends every connection to the database, with what is under way on them; nil
	// where there are none.
	Cut func()
	// Loose says that a claim may pass over a lease that somebody is at, and that it
	// looks at its own session first and takes the lease then: a session that ends in
	// between may get one, which is free for the next claim.
	Loose bool
}

const (
	// seedsEnv is how many runs are recorded; "make soak" says 200.
	seedsEnv = "LEASEHOLD_HISTORIES"
	seeds    = 3
	// decideWithin bounds the search, which takes milliseconds where there is an order.
	decideWithin = 2 * time.Minute
)

// Run records runs and checks them. build is called once for each.
func Run(t *testing.T, build func(t *testing.T) Harness) {
	n := seeds
	if text := os.Getenv(seedsEnv); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range n {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h := build(t)
			w := record(t, h, uint64(seed))
			for _, f := range w.check(t, os.TempDir()) {
				t.Errorf("lease %s: got answers that no order of the calls explains, want one; open %s in a browser", f.lease, f.path)
			}
		})
	}
}

// RunFaulty records runs on a store with a fault, until the checker finds it.
func RunFaulty(t *testing.T, build func(t *testing.T) Harness) {
	for _, f := range []struct {
		name  string
		plant func(storetest.Store) storetest.Store
	}{
		{"a release that does not compare the epoch is found", releasesAnyEpoch},
		{"an accept that is fenced by nothing is found", acceptsUnfenced},
		{"an accept that takes effect after its fence was looked at is found", acceptsLate},
	} {
		t.Run(f.name, func(t *testing.T) { find(t, build(t), f.plant) })
	}
}

// mostFaulty is how many runs a fault has to show in; the first or the second does.
const mostFaulty = 30

func find(t *testing.T, h Harness, plant func(storetest.Store) storetest.Store) {
	faulty := Harness{Open: func() storetest.Store { return plant(h.Open()) }, Loose: h.Loose}
	dir := t.TempDir()
	for seed := range mostFaulty {
		found := record(t, faulty, uint64(seed)).check(t, dir)
		if len(found) == 0 {
			continue
		}
		text, err := os.ReadFile(found[0].path)
		if err != nil || !strings.Contains(string(text), "release") {
			t.Errorf("the file that shows it: got %d bytes, %v, want the history", len(text), err)
		}
		t.Logf("found in run %d", seed+1)
		return
	}
	t.Errorf("got an order for each of %d histories, want one without", mostFaulty)
}

// finding is a lease whose answers no order explains.
type finding struct{ lease, path string }

// check looks for an order of each lease's calls.
func (w *world) check(t *testing.T, dir string) (all []finding) {
	t.Helper()
	model := w.model()
	for n, lease := range w.leases {
		ops := w.of(n)
		result, info := porcupine.CheckOperationsVerbose(model, ops, decideWithin)
		switch result {
		case porcupine.Ok:
		case porcupine.Illegal:
			path := filepath.Join(dir, fmt.Sprintf("leasehold-history-%d-%s.html", os.Getpid(), lease))
			if err := porcupine.VisualizePath(model, info, path); err != nil {
				t.Error(err)
			}
			all = append(all, finding{lease, path})
		default:
			t.Errorf("lease %s: got no decision on %d calls within %v, want one", lease, len(ops), decideWithin)
		}
	}
	return all
}
