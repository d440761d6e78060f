package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetries(t *testing.T) {
	t.Run("a refused event is tried again by the schedule and lets others of its lane pass after three tries", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			began := time.Now()
			var tries []time.Duration
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if d.EventID != "evt_1" {
					return Result{Outcome: Taken}
				}
				tries = append(tries, time.Since(began))
				return Result{Outcome: Refused, Reason: "answered 400"}
			}}
			b := start(t, box, Options{Random: func() float64 { return 1 }}, Target{Name: "app", Sink: sink})
			first, second := box.say("acme", "C1", "app"), box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(34 * time.Second)
			same(t, "arrived before the third try", len(sink.got()), 0)
			time.Sleep(2 * time.Second)
			sameList(t, "arrived after the third try", sink.got(), evt(second))
			time.Sleep(24 * time.Hour)
			r := box.row(first, "app")
			same(t, "state of the refused event after a day", r.state, Dead)
			same(t, "its reason", r.err, "older than 24h; it failed 10 times")
			same(t, "its attempts", r.Attempts, len(tries))
			want := []time.Duration{
				0, 5 * time.Second, 35 * time.Second, 155 * time.Second, 755 * time.Second, 2555 * time.Second,
				9755 * time.Second, 31355 * time.Second, 52955 * time.Second, 74555 * time.Second,
			}
			for i := range tries {
				tries[i] = tries[i].Truncate(time.Second)
			}
			sameList(t, "tries", tries, want)
		})
	})

	t.Run("hold keeps a conversation behind its refused event, in order, until that is taken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, healed := newOutbox(), time.Now().Add(20*time.Minute)
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if d.EventID == "evt_1" && time.Now().Before(healed) {
					return Result{Outcome: Broken, Reason: "answered 500"}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, OnFailure: Hold})
			var seqs []int64
			for range 10 {
				seqs = append(seqs, box.say("acme", "C1", "app"))
			}
			other := box.say("acme", "C2", "app")
			b.hold("acme")
			time.Sleep(10 * time.Minute)
			sameList(t, "arrived while it fails", sink.got(), evt(other))
			time.Sleep(2 * time.Hour)
			sameList(t, "arrived afterwards", sink.got(), evt(append([]int64{other}, seqs...)...))
			same(t, "attempts of the event that failed", box.row(1, "app").Attempts, 6)
		})
	})

	t.Run("attempts kill no delivery before it is an hour old, and then say so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: refuses("evt_1")}, MaxAttempts: 2})
			box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(59 * time.Minute)
			same(t, "state before the hour", box.row(1, "app").state, Pending)
			time.Sleep(2 * time.Minute)
			r := box.row(1, "app")
			same(t, "state after the hour", r.state, Dead)
			if want := fmt.Sprintf("%d attempts, the last: answered 400", r.Attempts); r.err != want {
				t.Errorf("got reason %q, want %q", r.err, want)
			}
		})
	})

	t.Run("what waits behind a slow event does not die of waiting, until max_age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(50 * time.Minute)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Timeout: time.Hour, MaxAge: 90 * time.Minute})
			for range 4 {
				box.say("acme", "C1", "app")
			}
			b.hold("acme")
			time.Sleep(3 * time.Hour)
			sameList(t, "arrived", sink.got(), evt(1, 2))
			for _, seq := range []int64{3, 4} {
				r := box.row(seq, "app")
				same(t, "state of what got too old", r.state, Dead)
				same(t, "its reason", r.err, "older than 1h30m")
				same(t, "its attempts", r.Attempts, 0)
			}
		})
	})

	t.Run("a replay is not killed by its age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			seq := box.say("acme", "C1", "app")
			time.Sleep(25 * time.Hour)
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "state of an event a day old", box.row(seq, "app").state, Dead)
			box.replay(seq)
			b.Wake("acme")
			time.Sleep(time.Second)
			same(t, "state after the replay", box.row(seq, "app").state, Delivered)
			d := sink.tries()[0]
			same(t, "marked as a replay", d.Replay, true)
			same(t, "its id", d.ID, box.row(seq, "app").WebhookID)
		})
	})

	t.Run("an event accepted before the clock was set does not die of it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			seq := box.say("acme", "C1", "app")
			box.change(seq, "app", func(r *fakeRow) { r.AcceptedAt = time.Unix(60, 0) })
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "state", box.row(seq, "app").state, Delivered)
		})
	})

	t.Run("due rows are sent after a restart, and waits go on over it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			first := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{answer: refuses("evt_1", "evt_2")}})
			box.say("acme", "C1", "app")
			first.hold("acme")
			time.Sleep(40 * time.Second) // three tries; the next is minutes away
			first.end()
			same(t, "attempts", box.row(1, "app").Attempts, 3)
			sink := &fakeSink{}
			second := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			second.hold("acme")
			time.Sleep(30 * time.Second)
			same(t, "arrived before it is due", len(sink.got()), 0)
			time.Sleep(2 * time.Minute)
			sameList(t, "arrived when it is due", sink.got(), evt(1))
		})
	})

	t.Run("Retry-After of a refused event is not come back before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				return Result{Outcome: Refused, Reason: "answered 425", After: 10 * time.Minute}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			box.say("acme", "C1", "app")
			b.hold("acme")
			time.Sleep(10*time.Minute - time.Second)
			same(t, "tries before", len(sink.tries()), 1)
			time.Sleep(2 * time.Minute)
			same(t, "tries after", len(sink.tries()), 2)
		})
	})

	t.Run("an event that is gone from the store, or cannot be read, is a dead letter at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			gone, garbled, fine := box.say("acme", "C1", "app"), box.say("acme", "C1", "app"), box.say("acme", "C1", "app")
			delete(box.events, gone)
			e := box.events[garbled]
			e.Body = []byte("{")
			box.events[garbled] = e
			b.hold("acme")
			time.Sleep(time.Second)
			same(t, "reason of the one that is gone", box.row(gone, "app").err, "its event is not in the store any more")
			if got := box.row(garbled, "app"); got.state != Dead || !strings.HasPrefix(got.err, "read event evt_2: ") {
				t.Errorf("got %v %q of the garbled one, want dead with the reason", got.state, got.err)
			}
			sameList(t, "arrived", sink.got(), evt(fine))
		})
	})

	t.Run("a sink that panics costs its event an attempt and nobody else anything", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if d.EventID == "evt_1" {
					panic("boom")
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			box.say("acme", "C1", "app")
			other := box.say("acme", "C2", "app")
			b.hold("acme")
			time.Sleep(time.Second)
			sameList(t, "arrived", sink.got(), evt(other))
			same(t, "reason", box.row(1, "app").err, "panic: boom")
			same(t, "attempts", box.row(1, "app").Attempts, 1)
		})
	})
}

// refuses answers 400 for these events.
func refuses(ids ...string) func(context.Context, Delivery) Result {
	return func(_ context.Context, d Delivery) Result {
		if slices.Contains(ids, d.EventID) {
			return Result{Outcome: Refused, Reason: "answered 400"}
		}
		return Result{Outcome: Taken}
	}
}
