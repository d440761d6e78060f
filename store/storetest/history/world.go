package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"leasehold/admin"
	"leasehold/store/storetest"
)

const (
	nodes   = 3
	clients = 2 // of a node
	leases  = 3
	calls   = 60 // of a client
	// ttl is short, so that a pause outlives it.
	ttl = 150 * time.Millisecond
	// cutEvery is how often connections are cut.
	cutEvery = 150 * time.Millisecond
)

// world is one run: what its clients share, and the history.
type world struct {
	h      Harness
	leases []string
	prefix string // of its sessions' ids
	began  time.Time

	mu       sync.Mutex // guards what follows
	history  []call
	sessions int
	events   int
	dead     map[int]bool // sessions of which an answer said so
	now      int64        // the latest time of the database's clock that was told, in ms
	toldAt   time.Time
	last     int // client of the history
}

// call is one call about one lease, or about all.
type call struct {
	lease  int // all = every lease
	client int
	from   time.Duration
	to     time.Duration // 0 = not answered
	in     input
	out    output
}

const all = -1

// record lets clients loose on a database and returns what they asked and were told,
// once nothing is under way any more.
func record(t *testing.T, h Harness, seed uint64) *world {
	t.Helper()
	w := &world{h: h, prefix: fmt.Sprintf("seed-%d-session-", seed), began: time.Now(), dead: map[int]bool{}, toldAt: time.Now()}
	var stores []storetest.Store
	for range nodes {
		stores = append(stores, h.Open())
	}
	for n := range leases {
		w.leases = append(w.leases, fmt.Sprintf("seed-%d-lease-%d", seed, n))
		if _, err := stores[0].PutInstallation(t.Context(), admin.Installation{ID: w.leases[n], Type: "fake", Enabled: true, Source: "api"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	var wg, cutting sync.WaitGroup
	over := make(chan struct{})
	if h.Cut != nil {
		cutting.Go(func() { w.cut(over, rand.New(rand.NewPCG(seed, math.MaxUint64))) })
	}
	for n, s := range stores {
		node := &node{world: w, store: s, instance: fmt.Sprintf("seed-%d-node-%d", seed, n), session: nobody, last: nobody}
		for c := range clients {
			wg.Go(func() {
				(&client{node: node, id: w.newClient(), rng: rand.New(rand.NewPCG(seed, uint64(n*clients+c)))}).run(t.Context())
			})
		}
	}
	wg.Wait()
	close(over)
	cutting.Wait()
	for _, s := range stores {
		if err := s.Close(); err != nil { // it waits for what is under way
			t.Fatal(err)
		}
	}
	w.settle(t, h.Open())
	return w
}

func (w *world) cut(over <-chan struct{}, rng *rand.Rand) {
	for {
		select {
		case <-over:
			return
		case <-time.After(cutEvery/2 + time.Duration(rng.Int64N(int64(cutEvery)))):
			w.h.Cut()
		}
	}
}

// settle compares what was told with what is stored, and takes the doubt out of
// the accepts: what is stored has taken effect at some time, and what is not, has
// not.
func (w *world) settle(t *testing.T, s storetest.Store) {
	t.Helper()
	stored := map[int]bool{}
	for _, lease := range w.leases {
		for before := int64(0); ; {
			events, err := s.Events(t.Context(), admin.EventQuery{Installation: lease, Limit: 500, Before: before})
			if err != nil {
				t.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for i := range events {
				n, err := strconv.Atoi(events[i].PlatformID)
				if err != nil {
					t.Fatal(err)
				}
				stored[n], before = true, events[i].Seq
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.history = slices.DeleteFunc(w.history, func(c call) bool {
		return c.in.kind == accept && c.out.answer == unknown && !stored[c.in.event]
	})
	for i := range w.history {
		c := &w.history[i]
		if c.in.kind != accept {
			continue
		}
		if c.out.answer == unknown {
			c.out.answer = yes
		}
		if c.out.answer == yes && !stored[c.in.event] || c.out.answer == no && stored[c.in.event] {
			t.Errorf("%s of %s: got stored %v", describe(c.in, c.out), w.leases[c.lease], stored[c.in.event])
		}
	}
}

// of is the history of a lease, as the checker reads it. What was not answered may
// take effect until the end.
func (w *world) of(lease int) (ops []porcupine.Operation) {
	for _, c := range w.history {
		if c.lease != lease && c.lease != all {
			continue
		}
		to := c.to
		if to == 0 {
			to = math.MaxInt64
		}
		ops = append(ops, porcupine.Operation{ClientId: c.client, Input: c.in, Call: int64(c.from), Output: c.out, Return: int64(to)})
	}
	return ops
}

// add keeps a call. A client whose call was not answered goes on as another one.
func (w *world) add(c *client, from time.Duration, lease int, in input, out output) {
	to := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	if out.answer == unknown {
		to = 0
	}
	w.history = append(w.history, call{lease: lease, client: c.id, from: from, to: to, in: in, out: out})
	if out.answer == unknown {
		w.last++
		c.id = w.last
	}
	switch {
	case in.kind == end && out.answer == yes, in.kind == renew && out.answer == no:
		w.dead[in.session] = true
	case in.kind == open && out.answer == yes:
		w.dead[in.old] = true
	}
}

func (w *world) newClient() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	return w.last
}

// newSession numbers a session; false: there have been enough.
func (w *world) newSession() (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions++
	return w.sessions - 1, w.sessions <= maxSessions
}

func (w *world) newEvent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	return w.events
}

func (w *world) knownDead(session int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead[session]
}

// told keeps the database's time.
func (w *world) told(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ms := now.UnixMilli(); ms > w.now {
		w.now, w.toldAt = ms, time.Now()
	}
}

// clock is the latest time that the database told, and what it must be about now.
func (w *world) clock() (told, about int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.now + time.Since(w.toldAt).Milliseconds()
}
