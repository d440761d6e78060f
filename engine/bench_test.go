package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// benchUnits is a node that holds as much as one is meant to.
const benchUnits = 10_000

// BenchmarkTick measures what the Core does every five seconds with ten thousand
// connections, all of them well: when the store says that nothing changed, and
// when it lists everything anew.
func BenchmarkTick(b *testing.B) {
	b.Run("unchanged", func(b *testing.B) {
		f := newFullCore(b)
		for b.Loop() {
			f.tick(b, Snapshot{Version: f.snap.Version, Unchanged: true}, 0)
		}
	})
	b.Run("full list", func(b *testing.B) {
		f := newFullCore(b)
		for b.Loop() {
			f.snap.Version++
			f.tick(b, f.snap, 1) // the riders among the rows
		}
	})
}

// fullCore is a Core whose every installation is connected.
type fullCore struct {
	*Core
	now   Instant
	snap  Snapshot
	lease map[string]int // index in snap.Leases
	live  int
	seq   uint64 // of the last list asked for
}

func newFullCore(b *testing.B) *fullCore {
	b.Helper()
	f := coreOf("websocket", coreOptions{rate: 1e6, inFlight: benchUnits})
	f.connect(b)
	f.now = f.now.Add(2 * StableAfter)
	f.step(b, inTick{}) // every term is stable now
	return f
}

// coreOf is a Core of as many installations of one type, none of which it has yet.
func coreOf(kind string, o coreOptions) *fullCore {
	o.instance, o.sole, o.timing, o.rand = "bench", true, DefaultTiming(), rand.New(rand.NewPCG(1, 2))
	o.known = func(string) bool { return true }
	f := &fullCore{snap: Snapshot{Version: 1}, lease: map[string]int{}, Core: newCore(o)}
	for i := range benchUnits {
		id := fmt.Sprintf("installation-%05d", i)
		f.snap.Installations = append(f.snap.Installations, Installation{ID: id, Type: kind, Enabled: true, Fingerprint: "f", Config: []byte("{}")})
		f.lease[id] = len(f.snap.Leases)
		f.snap.Leases = append(f.snap.Leases, Lease{ID: id})
	}
	return f
}

// connect goes on in time until every installation is connected.
func (f *fullCore) connect(b testing.TB) {
	b.Helper()
	for f.live < benchUnits {
		f.step(b, inTick{})
		f.now = max(f.now+1, min(f.Next(), f.now.Add(time.Second)))
	}
}

func TestWhatDialsNothingWaitsForNoDial(t *testing.T) {
	limits := coreOptions{rate: 50, inFlight: 64, offline: func(kind string) bool { return kind == "heartbeat" }}
	beats := coreOf("heartbeat", limits)
	beats.connect(t)
	if took := beats.now.Sub(0); took > time.Second {
		t.Errorf("got %d that make no connection up after %v, want them at once", benchUnits, took)
	}
	dials := coreOf("websocket", limits)
	dials.connect(t)
	if took, least := dials.now.Sub(0), (benchUnits-burst)/50*time.Second; took < least {
		t.Errorf("got %d connected after %v, want no less than %v", benchUnits, took, least)
	}
}

// step takes an input and answers what is asked, as a store and platforms would.
func (f *fullCore) step(b testing.TB, in Input) {
	for inputs := []Input{in}; len(inputs) > 0; inputs = inputs[1:] {
		for _, a := range f.Step(f.now, inputs[0]) {
			switch a := a.(type) {
			case actOpen:
				f.snap.Peers = []Peer{{Session: a.id, Instance: "bench", Weight: 1}}
				inputs = append(inputs, inSession{gen: a.gen, sentAt: f.now, now: time.UnixMilli(1)})
			case actList:
				inputs = append(inputs, inListed{seq: a.seq, snap: f.snap})
			case actClaim:
				grants := make([]Grant, 0, len(a.ids))
				for _, id := range a.ids {
					l := &f.snap.Leases[f.lease[id]]
					l.Owner, l.Alive, l.Epoch = a.session, true, 1
					grants = append(grants, Grant{ID: id, Epoch: 1})
				}
				inputs = append(inputs, inClaimed{gen: a.gen, ids: a.ids, grants: grants})
			case actBegin:
				f.live++
				inputs = append(inputs, inReady{a.row.ID, a.term})
			case actHold, actStatus, actRows, actTrust:
			default:
				b.Fatalf("got %#v, want nothing that a healthy node does not do", a)
			}
		}
	}
}

// tick is the time of one list, and its answer. wanted is how many actions follow.
func (f *fullCore) tick(b testing.TB, snap Snapshot, wanted int) {
	f.now = f.list.at
	asked := false
	for _, a := range f.Step(f.now, inTick{}) {
		list, ok := a.(actList)
		if !ok || asked {
			b.Fatalf("got %#v, want one list", a)
		}
		f.seq, asked = list.seq, true
	}
	if got := f.Step(f.now, inListed{seq: f.seq, snap: snap}); !asked || len(got) != wanted {
		b.Fatalf("got %d actions, a list asked for: %v, want %d and one", len(got), asked, wanted)
	}
}
