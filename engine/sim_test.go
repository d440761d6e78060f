package engine

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// The simulator runs several production Cores, with the production trust and
// gate, against a simulated store, network, platform and clocks, from one seed.
// It stands in the package rather than beside it, because it drives what only
// the package can see.

var (
	simSeeds = flag.Int("sim.seeds", 2000, "how many seeds the simulation runs")
	simFirst = flag.Uint64("sim.first", 1, "the first seed")
)

// planted is a fault of our own making, which the simulation must find.
type planted int

const (
	none planted = iota
	lateFence
	releaseWithoutEpoch
	gateSkipped
)

func TestSimulationHoldsItsPromises(t *testing.T) {
	var bad atomic.Int64
	var said sync.Map
	eachSeed(*simFirst, *simSeeds, func(seed uint64) {
		w := newWorld(seed, none)
		w.run()
		if len(w.violations) > 0 && bad.Add(1) <= 5 {
			said.Store(seed, shrunk(w).report())
		}
	})
	said.Range(func(_, report any) bool { t.Error(report); return true })
	if n := bad.Load(); n > 0 {
		t.Errorf("got %d of %d seeds with violations, want 0; repeat one with go test ./engine -run TestSimulationHolds -sim.first SEED -sim.seeds 1", n, *simSeeds)
	}
}

func TestSimulationFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		bug  planted
	}{
		{"a fence one second late", lateFence},
		{"a release that does not compare the epoch", releaseWithoutEpoch},
		{"a gate that lets everything pass", gateSkipped},
	} {
		t.Run(c.name, func(t *testing.T) {
			const within = 200
			var found atomic.Uint64
			eachSeed(1, within, func(seed uint64) {
				if found.Load() > 0 {
					return
				}
				w := newWorld(seed, c.bug)
				w.run()
				if w.broken > 0 {
					found.CompareAndSwap(0, seed)
				}
			})
			if found.Load() == 0 {
				t.Fatalf("got no violation in %d seeds, want one", within)
			}
			w := newWorld(found.Load(), c.bug)
			w.run()
			s := shrunk(w)
			if len(s.violations) == 0 || len(s.faults) > len(w.faults) {
				t.Errorf("got %d violations of %d faults after shrinking, want some, of no more than %d faults", len(s.violations), len(s.faults), len(w.faults))
			}
			t.Logf("of %d faults %d are enough: %s", len(w.faults), len(s.faults), s.report())
		})
	}
}

func TestSimulationRepeatsItself(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := newWorld(seed, none), newWorld(seed, none)
		a.run()
		b.run()
		if a.hash.Sum64() != b.hash.Sum64() {
			t.Fatalf("seed %d: got traces %x and %x, want the same", seed, a.hash.Sum64(), b.hash.Sum64())
		}
	}
	a, b := newWorld(1, none), newWorld(2, none)
	a.run()
	b.run()
	if a.hash.Sum64() == b.hash.Sum64() {
		t.Error("got one trace for two seeds: the hash sees nothing")
	}
}

func eachSeed(first uint64, n int, f func(seed uint64)) {
	next := atomic.Uint64{}
	next.Store(first)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= first+uint64(n) {
					return
				}
				f(seed)
			}
		})
	}
	wg.Wait()
}

// shrunk repeats a failed run without each fault that it fails without, too, so that
// its report names little else than the reason. A run with fewer faults takes other
// turns: what it ends in is a violation, if not the same one.
func shrunk(w *world) *world {
	without := map[int]bool{}
	for i := range w.planned {
		without[i] = true
		fewer := newWorldWithout(w.seed, w.bug, without)
		fewer.run()
		if len(fewer.violations) == 0 {
			delete(without, i)
			continue
		}
		w = fewer
	}
	return w
}

func (w *world) report() string {
	s := fmt.Sprintf("seed %d: %d nodes, sole %v\n", w.seed, len(w.nodes), w.sole)
	for _, v := range w.violations {
		s += "  violation: " + v + "\n"
	}
	for _, f := range w.faults {
		s += "  fault: " + f + "\n"
	}
	return s
}
