package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// line is a connection that takes every message, and notes when.
type line struct {
	channel.Channel

	mu    sync.Mutex // guards taken
	taken map[string]time.Time
	more  chan struct{} // holds one while there is something new
}

func (l *line) Send(_ context.Context, m channel.Message) (channel.Receipt, error) {
	l.mu.Lock()
	l.taken[m.ID] = time.Now()
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return channel.Receipt{MessageID: m.ID}, nil
}

// took waits until a message was taken, and returns when.
func (l *line) took(t testing.TB, id string) time.Time {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		l.mu.Lock()
		at, ok := l.taken[id]
		l.mu.Unlock()
		if ok {
			return at
		}
		select {
		case <-l.more:
		case <-late.C:
			t.Fatalf("%s: got nothing within a minute, want it sent", id)
		}
	}
}

// twoNodes are one that has the lease of "i" and sends, and one that only posts. The
// first looks by itself once an hour: what is sent earlier, it was told of.
func twoNodes(t testing.TB) (post func(id string) time.Time, l *line) {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	owner, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	l = &line{taken: map[string]time.Time{}, more: make(chan struct{}, 1)}
	m := outbound.New(owner, outbound.Options{Changed: owner.WatchMessages(t.Context()), Poll: time.Hour})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	term := hold(t, owner)
	m.Hold(term)
	m.Live(term, l)
	post = func(id string) time.Time {
		t.Helper()
		began := time.Now()
		posted := outbound.Message{Message: channel.Message{ID: id, Installation: term.Installation, Op: "send", Conversation: id}, ExpiresIn: time.Hour}
		if _, err := other.PutMessage(t.Context(), posted); err != nil {
			t.Fatal(err)
		}
		return began
	}
	l.took(t, func() string { post("first"); return "first" }()) // it listens
	return post, l
}

func TestMessagesThroughAnotherNode(t *testing.T) {
	t.Run("whoever has the lease is told of each, and sends it long before it looks by itself", func(t *testing.T) {
		post, l := twoNodes(t)
		for n := range 30 {
			id := fmt.Sprint("out_", n)
			post(id)
			l.took(t, id)
		}
	})

	t.Run("so is it of many at once", func(t *testing.T) {
		post, l := twoNodes(t)
		var posting sync.WaitGroup
		for n := range 4 {
			posting.Go(func() {
				for i := range 20 {
					post(fmt.Sprintf("out_%d_%d", n, i))
				}
			})
		}
		posting.Wait()
		for n := range 4 {
			for i := range 20 {
				l.took(t, fmt.Sprintf("out_%d_%d", n, i))
			}
		}
	})
}

// BenchmarkMessageThroughAnotherNode measures from the call that posts a message on a
// node without the lease to the connection of the one with it.
func BenchmarkMessageThroughAnotherNode(b *testing.B) {
	post, l := twoNodes(b)
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		id := fmt.Sprint("out_", n)
		began := post(id)
		took = append(took, l.took(b, id).Sub(began))
	}
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("ms-p%d", p))
	}
}
