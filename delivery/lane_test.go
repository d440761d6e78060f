package delivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestLanes(t *testing.T) {
	t.Run("events of a conversation arrive in order, one at a time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			term := b.hold("acme")
			var seqs []int64
			for range 20 {
				seqs = append(seqs, box.say("acme", "C1", "app"))
			}
			b.Accepted(term, seqs[19])
			time.Sleep(30 * time.Second)
			sameList(t, "arrived", sink.got(), evt(seqs...))
			same(t, "at the same time", sink.most(), 1)
			same(t, "delivered in the store", box.count("app", Delivered), 20)
		})
	})

	t.Run("threads of a conversation and riders of a lease have lanes of their own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Minute)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Timeout: time.Hour})
			for _, e := range []channel.Event{
				{Thread: "1"}, {Thread: "2"}, {Installation: "rider"}, {Installation: "rider", Thread: "1"},
			} {
				e.Conversation.ID = "C1"
				box.add("acme", e, "app")
			}
			b.hold("acme")
			time.Sleep(61 * time.Second)
			same(t, "at the same time", sink.most(), 4)
			same(t, "arrived", len(sink.got()), 4)
		})
	})

	t.Run("order installation keeps a whole installation in one lane", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Order: PerInstallation})
			var seqs []int64
			for i := range 10 {
				seqs = append(seqs, box.say("acme", string(rune('A'+i)), "app"))
			}
			b.hold("acme")
			time.Sleep(time.Minute)
			sameList(t, "arrived", sink.got(), evt(seqs...))
			same(t, "at the same time", sink.most(), 1)
		})
	})

	t.Run("order none sends a conversation in parallel", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Order: Unordered, Concurrency: 5})
			for range 20 {
				box.say("acme", "C1", "app")
			}
			b.hold("acme")
			time.Sleep(4500 * time.Millisecond)
			same(t, "arrived in four rounds of a second", len(sink.got()), 20)
			same(t, "at the same time", sink.most(), 5)
		})
	})

	t.Run("a slow conversation does not delay another and opens no circuit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				if conversationOf(d) == "slow" {
					<-ctx.Done()
					return Result{Outcome: Slow, Reason: "no answer in time"}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			term := b.hold("acme")
			for range 50 {
				box.say("acme", "slow", "app")
			}
			b.Accepted(term, 50)
			time.Sleep(20 * time.Minute) // alone: time-outs of one conversation are no outage
			same(t, "circuit", b.Stats().Targets[0].State, Closed)
			for i := range 100 {
				b.Accepted(term, box.say("acme", "quick", "app"))
				time.Sleep(100 * time.Millisecond)
				if got := len(sink.got()); got != i+1 {
					t.Fatalf("got %d events of the quick conversation a moment after its %d., want all", got, i+1)
				}
			}
			same(t, "arrived of the quick conversation", len(sink.got()), 100)
			same(t, "circuit", b.Stats().Targets[0].State, Closed)
		})
	})

	t.Run("calls stay within the target's concurrency and the total, and every target has one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			first, second := &fakeSink{answer: takes(time.Second)}, &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{Total: 4}, Target{Name: "a", Sink: first, Concurrency: 4}, Target{Name: "b", Sink: second, Concurrency: 4})
			for i := range 40 {
				box.say("acme", string(rune('A'+i)), "a")
			}
			b.hold("acme")
			time.Sleep(500 * time.Millisecond)
			box.say("other", "C1", "b")
			b.hold("other")
			time.Sleep(1100 * time.Millisecond)
			same(t, "arrived at the target that came later", len(second.got()), 1)
			time.Sleep(time.Minute)
			same(t, "most calls of the first", first.most(), 4)
			same(t, "arrived at the first", len(first.got()), 40)
		})
	})

	t.Run("targets share the total", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			first, second := &fakeSink{answer: takes(time.Second)}, &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{Total: 4}, Target{Name: "a", Sink: first}, Target{Name: "b", Sink: second})
			for i := range 60 {
				for range 10 {
					box.say("early", fmt.Sprint(i), "a")
					box.say("late", fmt.Sprint(i), "b")
				}
			}
			b.hold("early")
			time.Sleep(3500 * time.Millisecond)
			b.hold("late")
			time.Sleep(20 * time.Second)
			if n := len(second.got()); n < 30 {
				t.Errorf("got %d calls of the one that came later in 20 s, want about 40", n)
			}
		})
	})

	t.Run("an installation with many conversations does not keep another waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Second)}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, Concurrency: 2})
			for i := range 1000 {
				box.say("loud", string(rune('A'+i)), "app")
			}
			b.hold("loud")
			time.Sleep(10 * time.Second)
			seq := box.say("quiet", "C1", "app")
			b.hold("quiet")
			time.Sleep(2100 * time.Millisecond)
			same(t, "state of the quiet one's event", box.row(seq, "app").state, Delivered)
		})
	})
}

// takes answers that an event is taken, after d.
func takes(d time.Duration) func(context.Context, Delivery) Result {
	return func(ctx context.Context, _ Delivery) Result {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return Result{Outcome: Taken}
		case <-ctx.Done():
			return Result{Outcome: Aborted}
		}
	}
}

func conversationOf(d Delivery) string {
	var e envelope
	if err := unmarshal(d.Envelope, &e); err != nil {
		panic(err)
	}
	return e.Data.Conversation.ID
}
