package delivery

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// small makes the bounds on memory so tight that a test meets all of them.
func small(t *testing.T, box Outbox, l limits, targets ...Target) *bench {
	t.Helper()
	d, err := New(box, targets, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.limits = l
	return launch(t, d)
}

// tight are bounds under which nothing heals what we forget.
func tight(window, total, page int) limits { return limits{window, total, page, never, never} }

func TestWindow(t *testing.T) {
	t.Run("a backlog of 100,000 in one conversation is delivered in order with a bounded part in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			most := 0
			var b *bench
			sink := &fakeSink{}
			sink.answer = func(context.Context, Delivery) Result {
				most = max(most, b.entries())
				return Result{Outcome: Taken}
			}
			const n = 100_000
			var seqs []int64
			for range n {
				seqs = append(seqs, box.say("acme", "C1", "app"))
			}
			d, err := New(box, []Target{{Name: "app", Sink: sink}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			b = &bench{Dispatcher: d}
			b = launch(t, d)
			b.hold("acme")
			for len(sink.got()) < n {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			sameList(t, "arrived", sink.got(), evt(seqs...))
			if most > windowSize+pageSize {
				t.Errorf("got %d entries in memory, want at most %d", most, windowSize)
			}
			if limit := 4 * n; box.rowsRead() > limit {
				t.Errorf("got %d rows read, want less than %d", box.rowsRead(), limit)
			}
		})
	})

	t.Run("a stuck conversation with a long backlog starves no other and takes no memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, stuck := newOutbox(), &atomic.Bool{}
			stuck.Store(true)
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if stuck.Load() && conversationOf(d) == "stuck" {
					return Result{Outcome: Refused, Reason: "answered 400"}
				}
				return Result{Outcome: Taken}
			}}
			b := small(t, box, tight(40, 1000, 16), Target{Name: "app", Sink: sink, OnFailure: Hold})
			var first []int64
			for range 500 {
				first = append(first, box.say("acme", "stuck", "app"))
			}
			for i := range 300 {
				box.say("acme", fmt.Sprint("C", i%3), "app")
			}
			term := b.hold("acme")
			time.Sleep(time.Second)
			same(t, "arrived of the others", len(sink.got()), 300)
			for range 10 {
				b.Accepted(term, box.say("acme", "late", "app"))
				time.Sleep(100 * time.Millisecond)
			}
			same(t, "arrived of one that came later", len(sink.got()), 310)
			if n := b.entries(); n > 40 {
				t.Errorf("got %d entries in memory, want at most 40", n)
			}
			same(t, "more in the store", b.Stats().Targets[0].More, true)
			stuck.Store(false)
			time.Sleep(time.Hour)
			got := sink.got()
			sameList(t, "arrived of the stuck one", got[310:], evt(first...))
			same(t, "active leases", b.Stats().Active, 0)
			same(t, "entries in memory", b.entries(), 0)
		})
	})

	t.Run("an event that is accepted while a long backlog is read is delivered at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(ctx context.Context, d Delivery) Result {
				if strings.HasPrefix(conversationOf(d), "stuck") {
					return Result{Outcome: Refused, Reason: "answered 400"}
				}
				return takes(5*time.Millisecond)(ctx, d)
			}}
			b := small(t, box, tight(200, 1000, 4), Target{Name: "app", Sink: sink, OnFailure: Hold})
			box.lag = func() time.Duration { return time.Millisecond }
			for range 1500 {
				box.say("acme", "long", "app")
				for i := range 7 { // they stand between, so that more of the first takes several pages
					box.say("acme", fmt.Sprint("stuck", i), "app")
				}
			}
			term := b.hold("acme")
			time.Sleep(3200 * time.Millisecond) // it was read to its end once
			for i := range 20 {
				time.Sleep(37 * time.Millisecond)
				seq := box.say("acme", fmt.Sprint("C", i), "app")
				b.Accepted(term, seq)
				time.Sleep(60 * time.Millisecond)
				if got := box.row(seq, "app"); got.state != Delivered {
					t.Fatalf("got %v a moment after the %d., want it delivered", got.state, i+1)
				}
			}
			if n := len(sink.got()); n >= 1500 {
				t.Fatalf("got %d taken, want the long backlog to last", n)
			}
		})
	})

	t.Run("events of more conversations than there is room for that fail once are all tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if d.Attempt == 1 {
					return Result{Outcome: Refused, Reason: "answered 400"}
				}
				return Result{Outcome: Taken}
			}}
			box.lag = func() time.Duration { return 15 * time.Millisecond }
			b := small(t, box, tight(20, 1000, 3), Target{Name: "app", Sink: sink})
			village(box, 300, 1)
			b.hold("acme")
			time.Sleep(time.Hour)
			same(t, "delivered", box.count("app", Delivered), 300)
			same(t, "tries", len(sink.tries()), 600)
		})
	})

	t.Run("a change that nobody told of is found", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			sink := &fakeSink{answer: refuses("evt_2")}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink})
			first := box.say("acme", "C1", "app")
			box.say("acme", "C2", "app") // waits, so that the lease is not at rest
			b.hold("acme")
			time.Sleep(time.Minute)
			same(t, "state of the first", box.row(first, "app").state, Delivered)
			box.replay(first)
			time.Sleep(rereadEvery + sweepEvery)
			same(t, "state of the first after it was replayed", box.row(first, "app").state, Delivered)
		})
	})

	t.Run("more conversations than there is room for are all delivered, each in order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(time.Millisecond)}
			b := small(t, box, tight(20, 1000, 7), Target{Name: "app", Sink: sink, Concurrency: 8})
			want := village(box, 300, 4)
			b.hold("acme")
			time.Sleep(time.Minute)
			var ids []string
			for _, d := range sink.tries() {
				ids = append(ids, d.ID)
			}
			inOrder(t, ids, want)
			same(t, "entries in memory", b.entries(), 0)
			if n := box.rowsRead(); n > 4000 {
				t.Errorf("got %d rows read for 1200, want them read about twice", n)
			}
		})
	})

	t.Run("a target that is down for every lease keeps no other's deliveries out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, good := newOutbox(), &fakeSink{}
			var up atomic.Bool
			bad := &fakeSink{answer: func(context.Context, Delivery) Result {
				if up.Load() {
					return Result{Outcome: Taken}
				}
				return Result{Outcome: Down, Reason: "refused"}
			}}
			b := small(t, box, tight(100, 200, 50), Target{Name: "bad", Sink: bad}, Target{Name: "good", Sink: good})
			for lease := range 20 {
				for i := range 200 {
					box.say(fmt.Sprint("i", lease), fmt.Sprint("C", i), "bad", "good")
				}
				b.hold(fmt.Sprint("i", lease))
			}
			time.Sleep(time.Minute)
			same(t, "arrived at the good one", len(good.got()), 20*200)
			if n := box.called("pending"); n > 1000 {
				t.Errorf("got %d reads, want few", n)
			}
			if limit := 200 + 20*windowFloor; b.entries() > limit {
				t.Errorf("got %d entries in memory, want at most %d", b.entries(), limit)
			}
			up.Store(true)
			time.Sleep(5 * time.Minute)
			same(t, "arrived at the other one when it is back", len(bad.got()), 20*200)
		})
	})

	t.Run("more failed events than a window parks are all tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, healed := newOutbox(), time.Now().Add(20*time.Minute)
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				if time.Now().Before(healed) && d.EventID != "evt_1" {
					return Result{Outcome: Refused, Reason: "answered 400"}
				}
				return Result{Outcome: Taken}
			}}
			b := small(t, box, tight(windowSize, totalSize, pageSize), Target{Name: "app", Sink: sink})
			const n = 3 * parkedSize
			for i := range n {
				box.say("acme", fmt.Sprint("C", i), "app")
			}
			b.hold("acme")
			time.Sleep(10 * time.Minute)
			if n := b.entries(); n > parkedSize {
				t.Errorf("got %d entries in memory, want at most %d", n, parkedSize)
			}
			time.Sleep(2 * time.Hour)
			same(t, "delivered", box.count("app", Delivered), n)
			same(t, "active leases", b.Stats().Active, 0)
		})
	})

	t.Run("waking again and again while calls run delivers nothing twice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, sink := newOutbox(), &fakeSink{answer: takes(30 * time.Millisecond)}
			box.lag = func() time.Duration { return 3 * time.Millisecond }
			b := small(t, box, tight(50, 1000, 8), Target{Name: "app", Sink: sink})
			want := village(box, 20, 50)
			b.hold("acme")
			for range 500 {
				time.Sleep(7 * time.Millisecond)
				b.Wake("acme")
			}
			time.Sleep(time.Minute)
			var ids []string
			for _, d := range sink.tries() {
				ids = append(ids, d.ID)
			}
			inOrder(t, ids, want)
		})
	})

	t.Run("waking again and again while the target is down delivers nothing twice afterwards", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var up atomic.Bool
			box, sink := newOutbox(), &fakeSink{}
			sink.answer = func(ctx context.Context, d Delivery) Result {
				if up.Load() {
					return Result{Outcome: Taken}
				}
				takes(time.Second)(ctx, d)
				return Result{Outcome: Down, Reason: "refused"}
			}
			b := small(t, box, tight(10, 1000, 4), Target{Name: "app", Sink: sink})
			village(box, 40, 3)
			b.hold("acme")
			for range 2000 {
				time.Sleep(370 * time.Millisecond)
				b.Wake("acme")
			}
			up.Store(true)
			time.Sleep(2 * time.Minute)
			same(t, "taken", len(sink.got()), 120)
			same(t, "delivered", box.count("app", Delivered), 120)
		})
	})

	t.Run("a replay of more than fits, while later events are on their way, delivers those once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var down atomic.Bool
			box, sink := newOutbox(), &fakeSink{}
			sink.answer = func(ctx context.Context, d Delivery) Result {
				if !down.Load() {
					return Result{Outcome: Taken}
				}
				takes(10*time.Second)(ctx, d)
				return Result{Outcome: Down, Reason: "refused"}
			}
			b := small(t, box, tight(10, 1000, 4), Target{Name: "app", Sink: sink})
			village(box, 100, 1)
			term := b.hold("acme")
			time.Sleep(time.Second)
			same(t, "taken at first", len(sink.got()), 100)
			down.Store(true)
			village(box, 5, 1)
			b.Accepted(term, box.last())
			time.Sleep(30 * time.Second) // each has noted why it waits, and is looked at again
			var seqs []int64
			for seq := range int64(100) {
				seqs = append(seqs, seq+1)
			}
			box.replay(seqs...)
			b.Wake("acme")
			time.Sleep(5 * time.Minute)
			down.Store(false)
			time.Sleep(5 * time.Minute)
			same(t, "taken with the replay", len(sink.got()), 205)
		})
	})

	t.Run("deliveries of a target that is not configured are kept and shown, and said once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, log := newOutbox(), &logbook{}
			b := start(t, box, Options{Log: log.logger()}, Target{Name: "app", Sink: &fakeSink{}})
			for range 5 {
				box.say("acme", "C1", "ap", "app")
			}
			b.hold("acme")
			time.Sleep(48 * time.Hour)
			same(t, "kept", box.count("ap", Pending), 5)
			same(t, "delivered to the other", box.count("app", Delivered), 5)
			same(t, "records", len(log.find("target not configured")), 1)
			s := b.Stats().Targets[0]
			same(t, "name", s.Name, "ap")
			same(t, "state", s.State, Unknown)
			same(t, "waiting", s.Waiting, 5)
		})
	})

	t.Run("reads that fail are repeated, and said once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, op := range []string{"pending", "payloads"} {
				box, sink, log := newOutbox(), &fakeSink{}, &logbook{}
				b := start(t, box, Options{Log: log.logger()}, Target{Name: "app", Sink: sink})
				want := village(box, 3, 3)
				box.setFault(fails, op)
				b.hold("acme")
				time.Sleep(10 * time.Minute)
				same(t, "arrived meanwhile", len(sink.got()), 0)
				if n := box.called(op); n > 40 {
					t.Errorf("got %d reads in ten minutes, want two a minute", n)
				}
				box.setFault(works)
				time.Sleep(time.Minute)
				var ids []string
				for _, d := range sink.tries() {
					ids = append(ids, d.ID)
				}
				inOrder(t, ids, want)
				same(t, "records", len(log.find("backlog unreadable"))+len(log.find("events unreadable")), 1)
				b.end()
			}
		})
	})
}

func TestAtRest(t *testing.T) {
	t.Run("10,000 leases cost less than a kilobyte each, no goroutine and no read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const n = 10_000
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "app", Sink: &fakeSink{}})
			time.Sleep(time.Second)
			terms := make([]string, n)
			for i := range terms {
				terms[i] = fmt.Sprint("installation-", i)
				box.grant(terms[i])
			}
			goroutines, heap := runtime.NumGoroutine(), heapInUse()
			for _, lease := range terms {
				b.Hold(box.term(lease))
			}
			time.Sleep(time.Minute)
			reads := box.called("pending")
			same(t, "reads at the start", reads, n)
			if each := (heapInUse() - heap) / n; each > 1000 {
				t.Errorf("got %d bytes for a lease at rest, want less than 1000", each)
			}
			if g := runtime.NumGoroutine(); g > goroutines+n/100 { // the runtime has some that come and go
				t.Errorf("got %d goroutines, want about the %d without leases", g, goroutines)
			}
			time.Sleep(24 * time.Hour)
			same(t, "reads in a day", box.called("pending"), reads)
			same(t, "marks", box.called("mark"), 0)
		})
	})
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTrim(t *testing.T) {
	t.Run("an entry whose outcome is not stored yet is not let go of", func(t *testing.T) {
		d, err := New(newOutbox(), []Target{{Name: "app", Kind: "log"}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		d.Hold(channel.Term{Installation: "acme"})
		l := d.holds["acme"].window(d.order[0]).lane(laneKey{conversation: "C1"})
		for seq := range int64(6) {
			l.insert(&entry{seq: seq + 1, marking: seq == 3})
		}
		l.trim(2, 1)
		var kept []int64
		for _, e := range l.entries {
			kept = append(kept, e.seq)
		}
		sameList(t, "kept", kept, []int64{1, 2, 3, 4})
		same(t, "read again from", l.cut, 5)
		same(t, "entries in memory", d.items, 4)
	})
}
