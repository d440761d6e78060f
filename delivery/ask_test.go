package delivery

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestAsk(t *testing.T) {
	// ask asks for the answer to an event that a target answers with a body after a
	// while, and returns the answer and how long that took.
	ask := func(t *testing.T, asks bool, after time.Duration, body string, target Target) (ack string, ok bool, took time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			target.Name, target.Sink = "app", &fakeSink{answer: func(context.Context, Delivery) Result {
				time.Sleep(after)
				return Result{Outcome: Taken, Answer: ReadAnswer("", []byte(body))}
			}}
			b := start(t, newOutbox(), speaking(Options{Asks: func(string) bool { return asks }}), target)
			term := b.hold("a")
			var asking sync.WaitGroup
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				began := time.Now()
				raw, answered := b.Ask(ctx, term, channel.Event{ID: "p1"}) // as the outbox numbers them
				ack, ok, took = string(raw), answered, time.Since(began)
			})
			synctest.Wait()
			seq := b.box.say("a", "C1", "app")
			b.Accepted(term, seq)
			time.Sleep(time.Minute)
			asking.Wait()
			same(t, "state", b.box.row(seq, "app").state, Delivered)
			b.mu.Lock()
			defer b.mu.Unlock()
			same(t, "who waits still", len(b.askers), 0)
		})
		return ack, ok, took
	}

	t.Run("the program's own answer is handed over as it is", func(t *testing.T) {
		ack, ok, took := ask(t, true, time.Second, `{"ack":{"modal": 1},"text":"later"}`, Target{})
		same(t, "answer", ack, `{"modal": 1}`)
		same(t, "there is one", ok, true)
		same(t, "after", took, time.Second)
	})

	t.Run("one that comes too late is none", func(t *testing.T) {
		_, ok, took := ask(t, true, 3*time.Second, `{"ack":{}}`, Target{})
		same(t, "there is one", ok, false)
		same(t, "after", took, 2500*time.Millisecond)
	})

	t.Run("an installation that does not ask waits for nothing", func(t *testing.T) {
		_, ok, took := ask(t, false, 0, `{"ack":{}}`, Target{})
		same(t, "there is one", ok, false)
		same(t, "after", took, 0)
	})

	t.Run("a target that is not to speak gives none", func(t *testing.T) {
		_, ok, _ := ask(t, true, 0, `{"ack":{}}`, Target{NoReplies: true})
		same(t, "there is one", ok, false)
	})

	t.Run("who asks after the program has answered gets the answer, once, for a moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), speaking(Options{Asks: func(string) bool { return true }}), Target{Name: "app", Sink: &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				return Result{Outcome: Taken, Answer: ReadAnswer("", []byte(`{"ack":"of `+d.EventID+`"}`))}
			}}})
			term := b.hold("a")
			for range 2 * earlyMost {
				b.Accepted(term, b.box.say("a", "C1", "app"))
			}
			time.Sleep(time.Second)
			b.mu.Lock()
			same(t, "kept", len(b.early), earlyMost)
			b.mu.Unlock()
			ask := func(event string) string {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				ack, _ := b.Ask(ctx, term, channel.Event{ID: event})
				return string(ack)
			}
			same(t, "the last", ask("p64") != "", true)
			same(t, "the last, again", ask("p64"), "")
			same(t, "one that gave way", ask("p1"), "")
			time.Sleep(earlyFor)
			b.Accepted(term, b.box.say("a", "C1", "app"))
			time.Sleep(time.Second)
			b.mu.Lock()
			same(t, "kept after a while", len(b.early), 1)
			b.mu.Unlock()
		})
	})
}
