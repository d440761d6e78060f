package outbound

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// mortal is the outside world as one process sees it, until it dies: from then on it
// neither writes nor sends.
type mortal struct {
	box      *fakeBox
	platform *platform
	mu       sync.Mutex
	steps    int // those before and after each call of the outside
	at       int // the step at which it dies; 0 = it lives
}

var errDead = errors.New("killed")

// lives counts a step and reports whether the process comes through it.
func (m *mortal) lives() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	return m.at == 0 || m.steps < m.at
}

func through[T any](m *mortal, call func() (T, error)) (v T, err error) {
	if !m.lives() {
		return v, errDead
	}
	got, err := call()
	if !m.lives() {
		return v, errDead
	}
	return got, err
}

func (m *mortal) Laden(ctx context.Context) ([]string, error) {
	return through(m, func() ([]string, error) { return m.box.Laden(ctx) })
}

func (m *mortal) Outgoing(ctx context.Context, lease string, after int64, limit int) ([]Item, error) {
	return through(m, func() ([]Item, error) { return m.box.Outgoing(ctx, lease, after, limit) })
}

func (m *mortal) BeginSending(ctx context.Context, t channel.Term, seq int64) (TakenUp, error) {
	return through(m, func() (TakenUp, error) { return m.box.BeginSending(ctx, t, seq) })
}

func (m *mortal) EndSending(ctx context.Context, e End) error {
	_, err := through(m, func() (struct{}, error) { return struct{}{}, m.box.EndSending(ctx, e) })
	return err
}

// sender is the mortal's connection.
type sender struct {
	channel.Channel
	m *mortal
}

func (s sender) Send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	return through(s.m, func() (channel.Receipt, error) { return s.m.platform.Send(ctx, m) })
}

// Writes are the platform's.
func (s sender) Writes() channel.Writing { return s.m.platform.writes }

// long is a text that takes three messages of narrow.
var (
	long   = strings.Repeat(strings.Repeat("x", 90)+"\n", 3)
	narrow = channel.Writing{Limit: 100, Unit: "utf16"}
)

// lengthen makes every third message a long one.
func lengthen(n int) func(*fakeRow) {
	return func(r *fakeRow) {
		if n%3 == 2 {
			r.Text = long
		}
	}
}

// sentParts is how many of a message's parts the platform has taken, each once and none
// before the one in front of it.
func sentParts(w *world, got map[string]int, r *fakeRow) (n int) {
	w.Helper()
	ids := []string{r.ID}
	if r.Text == long {
		ids = append(ids, r.ID+".2", r.ID+".3")
	}
	for i, id := range ids {
		switch {
		case got[id] > 1:
			w.Errorf("%s: got it taken %d times, want once", id, got[id])
		case got[id] == 1 && n < i:
			w.Errorf("%s: got it taken, and not what is before it", id)
		case got[id] == 1:
			n++
		}
	}
	switch whole := len(ids); {
	case r.state == Sent && n < whole:
		w.Errorf("%s: got sent with %d of %d parts, want all", r.ID, n, whole)
	case r.state == Sent && whole > 1 && w.platform.text(ids[0])+w.platform.text(ids[1])+w.platform.text(ids[2]) != strings.ReplaceAll(long, "\n", ""):
		w.Errorf("%s: got another text sent than was posted", r.ID)
	case (r.state == Refused || r.state == Expired) && n > 0 && strings.Count(r.receipt, "m-") != n+1:
		w.Errorf("%s: got %s with %d parts on the platform and the receipt %s, want it to have them", r.ID, r.state, n, r.receipt)
	case r.state == Unknown && n > 0 && n < whole && r.words == "":
		w.Errorf("%s: got unknown without a reason", r.ID)
	}
	return n
}

// taken is how often the platform has taken each message.
func taken(p *platform) map[string]int {
	n := map[string]int{}
	for _, id := range p.got() {
		n[id]++
	}
	return n
}

// judge holds every message against what the platform has taken.
func judge(w *world) (unknown int) {
	w.Helper()
	got := taken(w.platform)
	for seq := range int64(len(w.box.rows)) {
		r := w.box.row(seq + 1)
		sentParts(w, got, &r)
		if !r.state.Done() {
			w.Errorf("%s: got %s, want it done", r.ID, r.state)
		}
		if r.state == Unknown {
			unknown++
		}
	}
	return unknown
}

func TestKilledAtEveryStep(t *testing.T) {
	for _, repeats := range []bool{false, true} {
		for at, last := 1, false; !last; at++ {
			synctest.Test(t, func(t *testing.T) {
				w := &world{T: t, box: newBox(), platform: &platform{dedupes: repeats, writes: narrow}}
				w.platform.answer = func(m channel.Message, n int) (time.Duration, bool, error) {
					if m.ID == "out_2" && n == 0 {
						return 0, false, channel.NotSent(errors.New("busy"))
					}
					return 0, true, nil
				}
				for n := range 6 {
					w.box.post("a", fmt.Sprint("C", n%2), lengthen(n))
				}
				o := Options{Random: func() float64 { return 0 }}
				if repeats {
					idempotent(&o)
				}
				m := &mortal{box: w.box, platform: w.platform, at: at}
				w.m = New(m, o)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.m.Run(ctx) }()
				term := w.box.grant("a")
				w.m.Hold(term)
				w.m.Live(term, sender{m: m})
				time.Sleep(time.Minute)
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Run: got %v, want nil", err)
				}
				last = m.steps < at

				w.begin(func(next *Options) { *next = o })
				w.live("a")
				time.Sleep(time.Minute)
				unknown := judge(w)
				switch {
				case repeats && unknown > 0, unknown > 2:
					t.Errorf("killed at step %d: got %d unknown, want those alone that were on their way", at, unknown)
				case last && unknown > 0:
					t.Errorf("not killed: got %d unknown, want none", unknown)
				}
				inOrder(w, func(id string) string {
					var n int
					_, _ = fmt.Sscanf(id, "out_%d", &n)
					return fmt.Sprint(n % 2)
				})
				w.stop()
				if t.Failed() {
					t.Logf("killed at step %d", at)
				}
			})
			if t.Failed() || at > 500 {
				t.Fatalf("stopped at step %d", at)
			}
		}
	}
}

// TestSimulation lets several processes, which lose their leases, their connections
// and the answers of a store that fails, send what is posted meanwhile.
func TestSimulation(t *testing.T) {
	for seed := range uint64(150) {
		repeats := seed%2 == 1
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
			var mu sync.Mutex                   // guards r
			roll := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n)
			}
			w := &world{T: t, box: newBox(), platform: &platform{shared: true, dedupes: repeats, writes: narrow}}
			w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) {
				took := time.Duration(roll(2000)) * time.Millisecond
				switch roll(12) {
				case 0, 1:
					return took, false, channel.NotSent(errors.New("reset"))
				case 2:
					return took, false, channel.RateLimited(errors.New("slow"), time.Duration(roll(60))*time.Second)
				case 3:
					return took, false, channel.Refused(errors.New("no"))
				case 4:
					return took, roll(2) == 0, errors.New("lost")
				}
				return took, true, nil
			}
			o := Options{Random: func() float64 { return float64(roll(100)) / 100 }, Poll: 5 * time.Second, PerLease: 1 + roll(4)}
			if repeats {
				idempotent(&o)
			}
			nodes := make([]*Mailer, 3)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for i := range nodes {
				nodes[i] = New(w.box, o)
				running.Go(func() { _ = nodes[i].Run(ctx) })
			}
			leases := []string{"a", "b"}
			held := map[string]int{"a": 0, "b": 0}
			terms := map[string]channel.Term{}
			take := func(lease string, node int) {
				held[lease], terms[lease] = node, w.box.grant(lease)
				nodes[node].Hold(terms[lease])
				nodes[node].Live(terms[lease], w.platform)
			}
			for _, l := range leases {
				take(l, roll(3))
			}
			w.box.breaks(func(string) faultMode {
				if n := roll(10); n < 2 {
					return faultMode(n + 1)
				}
				return works
			})
			for range 60 {
				lease := leases[roll(2)]
				node := nodes[held[lease]]
				switch roll(8) {
				case 0: // handed over in order
					limited, done := context.WithTimeout(ctx, 3*time.Second)
					node.Drop(limited, terms[lease])
					done()
					take(lease, roll(3))
				case 1: // lost: its old holder learns of it by the fence
					old := terms[lease]
					take(lease, (held[lease]+1)%3)
					running.Go(func() {
						time.Sleep(time.Duration(roll(5000)) * time.Millisecond)
						node.Drop(ctx, old)
					})
				case 2: // another connection
					t := terms[lease]
					node.Live(t, nil)
					time.Sleep(time.Duration(roll(3000)) * time.Millisecond)
					t.Run++
					terms[lease] = t
					node.Live(t, w.platform)
				default:
					for range 1 + roll(5) {
						w.box.post(lease, fmt.Sprint(lease, roll(3)), lengthen(roll(6)))
					}
					node.Wake(lease)
				}
				time.Sleep(time.Duration(roll(2000)) * time.Millisecond)
			}
			w.box.breaks(nil)
			time.Sleep(2 * time.Hour)
			judge(w)
			cancel()
			running.Wait()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
