package delivery

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/internal/fault"
)

// tell begins a stream of "app", which ends with the test.
func tell(t *testing.T, d *Dispatcher, o StreamOptions) *Stream {
	t.Helper()
	s, err := d.Stream("app", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// told is what comes within a second.
func told(t *testing.T, s *Stream) (all []Leased) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for {
		l, err := s.Next(ctx)
		switch {
		case err == nil:
			all = append(all, l)
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrStreamOver):
			return all
		default:
			t.Fatal(err)
		}
	}
}

// isOver fails unless the stream has ended.
func isOver(t *testing.T, s *Stream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := s.Next(ctx); !errors.Is(err, ErrStreamOver) {
		t.Errorf("got %v, %v, want the stream to be over", l, err)
	}
}

func TestStream(t *testing.T) {
	sayAll := func(box *fakeOutbox, conversations ...string) {
		for _, c := range conversations {
			box.say("acme", c, "app")
		}
	}

	pulling(t, "one of each conversation comes at a time, and the next as soon as it is acknowledged", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A", "A", "B")
		term := b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 10})
		first := told(t, s)
		sameList(t, "first", eventsOf(first), evt(1, 3))
		acknowledge(t, b.Dispatcher, first)
		second := told(t, s)
		sameList(t, "second", eventsOf(second), evt(2))
		acknowledge(t, b.Dispatcher, second)
		time.Sleep(time.Hour)
		b.Accepted(term, box.say("acme", "A", "app"))
		third := told(t, s)
		sameList(t, "heard later", eventsOf(third), evt(4))
		acknowledge(t, b.Dispatcher, third)
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "delivered", box.count("app", Delivered), 4)
	})

	pulling(t, "no more come than may be unacknowledged, and one for each that is", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A", "B", "C", "D", "E")
		b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 2})
		first := told(t, s)
		same(t, "at first", len(first), 2)
		acknowledge(t, b.Dispatcher, first[:1])
		second := told(t, s)
		same(t, "for one that is acknowledged", len(second), 1)
		_, err := b.GiveBack("app", leasesOf(second), "", 0)
		same(t, "error", err, nil)
		same(t, "for one that is given back", len(told(t, s)), 1)
	})

	pulling(t, "what is not acknowledged in time is offered again as the same delivery, and its stream ends", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A")
		b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 5})
		first := told(t, s)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		isOver(t, s)
		time.Sleep(10 * time.Second) // the first wait after a failure
		again := told(t, tell(t, b.Dispatcher, StreamOptions{Most: 5}))
		same(t, "offered again", len(again), 1)
		same(t, "delivery", again[0].ID, first[0].ID)
		same(t, "attempt", again[0].Attempt, 2)
	})

	pulling(t, "who comes back has at once what never arrived, without an attempt, and may still acknowledge what did", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A", "B", "C", "D")
		b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 3})
		first := told(t, s)
		same(t, "sent", len(first), 3)
		back := tell(t, b.Dispatcher, StreamOptions{Most: 3, After: first[0].Lease})
		isOver(t, s)
		second := told(t, back)
		same(t, "sent again, and the one that is left", len(second), 3)
		for _, l := range second {
			same(t, "attempt", l.Attempt, 1)
		}
		acknowledge(t, b.Dispatcher, append(first[:1:1], second...))
		over, err := b.Acknowledge("app", leasesOf(first))
		same(t, "error", err, nil)
		sameList(t, "over", over, leasesOf(first))
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "delivered", box.count("app", Delivered), 4)
	})

	pulling(t, "coming back acknowledges what arrived, where it is to, and twice is once", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A", "B", "C", "A")
		b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 3})
		first := told(t, s)
		s.Close()
		back := tell(t, b.Dispatcher, StreamOptions{Most: 3, After: first[1].Lease, Acknowledge: true})
		second := told(t, back)
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "delivered", box.count("app", Delivered), 2)
		tell(t, b.Dispatcher, StreamOptions{Most: 3, After: first[2].Lease, Acknowledge: true})
		acknowledge(t, b.Dispatcher, second)
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "delivered, with those of the second stream", box.count("app", Delivered), 2+len(second))
	})

	pulling(t, "a lease that no stream knows says nothing", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A")
		b.hold("acme")
		pulled := pulls(t, b.Dispatcher, 1)
		for _, after := range []string{"lse_OF-7", "lse_", "7", pulled[0].Lease, pulled[0].Lease + "-1"} {
			tell(t, b.Dispatcher, StreamOptions{After: after, Acknowledge: true}).Close()
		}
		acknowledge(t, b.Dispatcher, pulled)
	})

	pulling(t, "streams take turns, and one that has ended gets nothing", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A", "B", "C", "D")
		one, two := tell(t, b.Dispatcher, StreamOptions{Most: 10}), tell(t, b.Dispatcher, StreamOptions{Most: 10})
		tell(t, b.Dispatcher, StreamOptions{Most: 10}).Close()
		b.hold("acme")
		same(t, "one", len(told(t, one)), 2)
		same(t, "two", len(told(t, two)), 2)
	})

	pulling(t, "what nobody had read of a stream that ends is offered again at once, which is no attempt", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A", "B")
		b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 2})
		synctest.Wait()
		s.Close()
		isOver(t, s)
		again := pulls(t, b.Dispatcher, 2)
		sameList(t, "pulled", eventsOf(again), evt(1, 2))
		same(t, "attempt", again[0].Attempt, 1)
	})

	pulling(t, "it ends with the last lease that the node holds, and with its target", func(t *testing.T, box *fakeOutbox, b *bench) {
		sayAll(box, "A")
		acme, other := b.hold("acme"), b.hold("other")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 1})
		same(t, "sent", len(told(t, s)), 1)
		b.Drop(t.Context(), other)
		same(t, "while one is held", len(told(t, s)), 0)
		select {
		case <-s.p.more:
			t.Error("got the stream ended, want it to go on")
		default:
		}
		b.Drop(t.Context(), acme)
		isOver(t, s)
		b.hold("acme")
		s = tell(t, b.Dispatcher, StreamOptions{Most: 1})
		got := told(t, s)
		same(t, "after the next grant", len(got), 1)
		same(t, "attempt", got[0].Attempt, 1)
		acknowledge(t, b.Dispatcher, got)
		b.set()
		synctest.Wait()
		isOver(t, s)
	})

	pulling(t, "an idle stream reads and writes nothing", func(t *testing.T, box *fakeOutbox, b *bench) {
		b.hold("acme")
		s := tell(t, b.Dispatcher, StreamOptions{Most: 5})
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := func() int { return box.called("pending") + box.called("payloads") + box.called("mark") }
		before := calls()
		time.Sleep(time.Minute)
		same(t, "told", len(told(t, s)), 0)
		same(t, "calls of the store", calls(), before)
	})

	pulling(t, "there is none of a target that is not pulled from", func(t *testing.T, _ *fakeOutbox, b *bench) {
		b.set(Target{Name: "app", Kind: "log"})
		_, err := b.Stream("app", StreamOptions{})
		same(t, "another kind", fault.Of(err), fault.Invalid)
		_, err = b.Stream("nobody", StreamOptions{})
		same(t, "another name", fault.Of(err), fault.NotFound)
	})

	t.Run("a system event that is not acknowledged yet takes nobody's place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Kind: "pull", Events: []string{"*", "system.*"}})
			b.Announce(Announcement{Type: "system.node", System: []byte(`{}`)})
			news := pulls(t, b.Dispatcher, 1)
			same(t, "type", news[0].Type, "system.node")
			sayAll(box, "A")
			b.hold("acme")
			time.Sleep(10 * time.Second) // the delivery waits, and is not tried in vain all the time
			acknowledge(t, b.Dispatcher, news)
			got := pulls(t, b.Dispatcher, 1)
			sameList(t, "pulled", eventsOf(got), evt(1))
		})
	})
}
