package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// backlog lets n events of some conversations wait, and holds their lease.
func backlog(b *bench, n, conversations int) {
	for i := range n {
		b.box.say("a", fmt.Sprint("C", i%conversations), "app")
	}
	b.hold("a")
}

func TestBatch(t *testing.T) {
	t.Run("what waits goes together, each conversation in its order", func(t *testing.T) {
		for _, c := range []struct {
			conversations int
			order         Order
		}{{100, ""}, {1, ""}, {7, ""}, {3, PerInstallation}, {3, Unordered}} {
			synctest.Test(t, func(t *testing.T) {
				sink := &fakeSink{}
				b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 10, Concurrency: 1, Order: c.order})
				backlog(b, 100, c.conversations)
				time.Sleep(time.Second)
				same(t, "delivered", b.box.count("app", Delivered), 100)
				if sizes := sink.sizes(); len(sizes) != 10 || slices.Max(sizes) != 10 {
					t.Errorf("%+v: got batches of %v, want ten of ten", c, sizes)
				}
				for _, batch := range sink.sent() {
					if !slices.IsSortedFunc(batch, func(a, b Delivery) int { return seqOf(a) - seqOf(b) }) {
						t.Errorf("%+v: got a batch out of order: %v", c, batch)
					}
				}
				if c.order != Unordered {
					sameList(t, "out of order", disorderOf(b.box, "app", sink.got()), nil)
				}
				same(t, "in memory", b.entries(), 0)
				same(t, "in flight", b.Stats().InFlight, 0)
			})
		}
	})

	t.Run("one event is no batch, and waits for no other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 10})
			term := b.hold("a")
			for range 3 {
				b.Accepted(term, b.box.say("a", "C1", "app"))
				synctest.Wait()
			}
			same(t, "batches", len(sink.sizes()), 0)
			same(t, "taken", len(sink.got()), 3)
		})
	})

	t.Run("an event that the target does not want costs the others of its batch nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			bad := "evt_5"
			sink := &fakeSink{
				answer: func(_ context.Context, d Delivery) Result {
					if d.EventID == bad {
						return Result{Outcome: Refused, Reason: "answered 422"}
					}
					return Result{Outcome: Taken}
				},
				answerBatch: func(_ context.Context, all []Delivery) Result {
					if slices.ContainsFunc(all, func(d Delivery) bool { return d.EventID == bad }) {
						return Result{Outcome: Refused, Reason: "answered 422"}
					}
					return Result{Outcome: Taken}
				},
			}
			var book logbook
			b := start(t, newOutbox(), Options{Log: book.logger()}, Target{Name: "app", Sink: sink, Batch: 10, Concurrency: 1, Order: Unordered})
			backlog(b, 40, 4)
			time.Sleep(2 * time.Second)
			same(t, "delivered", b.box.count("app", Delivered), 39)
			same(t, "attempts of the bad one", b.box.row(5, "app").Attempts, 1)
			same(t, "batches that were not taken", len(book.find("batch not taken")), 1)
			for _, d := range sink.tries() {
				if d.EventID != bad && d.Attempt != 1 {
					t.Errorf("got attempt %d of %s, want the batch not to count", d.Attempt, d.EventID)
				}
			}
			b.box.say("a", "C1", "app")
			for range 30 {
				b.box.say("a", "C2", "app")
			}
			time.Sleep(2 * time.Minute) // beyond the pause
			b.Wake("a")
			time.Sleep(time.Second)
			if sizes := sink.sizes(); len(sizes) < 3 {
				t.Errorf("got batches of %v, want some again after the pause", sizes)
			}
		})
	})

	t.Run("a target that is down uses up no attempt, and gets batches when it is back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			up := time.Now().Add(5 * time.Second)
			sink := &fakeSink{answer: func(context.Context, Delivery) Result {
				if time.Now().Before(up) {
					return Result{Outcome: Down, Reason: "refused"}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 10, Concurrency: 1})
			backlog(b, 50, 50)
			time.Sleep(time.Second / 2)
			same(t, "state", b.Stats().Targets[0].State, Open)
			same(t, "waiting", b.Stats().Targets[0].Waiting, 50)
			time.Sleep(time.Minute)
			same(t, "delivered", b.box.count("app", Delivered), 50)
			for _, d := range sink.tries() {
				same(t, "attempt", d.Attempt, 1)
			}
		})
	})

	t.Run("what has failed, and what is sent again, goes by itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 10, Concurrency: 1})
			for range 20 {
				b.box.say("a", "C1", "app")
			}
			b.box.change(3, "app", func(r *fakeRow) { r.Attempts = 1 })
			b.box.change(8, "app", func(r *fakeRow) { r.Replay = true })
			b.hold("a")
			time.Sleep(time.Second)
			for _, batch := range sink.sent() {
				for _, d := range batch {
					if s := seqOf(d); s == 3 || s == 8 {
						t.Errorf("got event %d in a batch, want it by itself", s)
					}
				}
			}
			sameList(t, "taken", sink.got(), evt(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))
		})
	})

	t.Run("a batch is bounded by its bytes, too, and an event that is gone stops nobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 100, Concurrency: 1})
			large := strings.Repeat("x", 300<<10)
			for i := range 30 {
				b.box.add("a", channel.Event{ID: fmt.Sprint(i), Type: "message", Conversation: channel.Ref{ID: fmt.Sprint(i % 3)}, Text: large}, "app")
			}
			b.box.mu.Lock()
			delete(b.box.events, 7)
			b.box.mu.Unlock()
			b.hold("a")
			time.Sleep(time.Second)
			same(t, "delivered", b.box.count("app", Delivered), 29)
			same(t, "dead", b.box.count("app", Dead), 1)
			sameList(t, "out of order", disorderOf(b.box, "app", sink.got()), nil)
			for _, batch := range sink.sent() {
				size := 0
				for _, d := range batch {
					size += len(d.Envelope)
				}
				if size > batchBytes {
					t.Errorf("got a batch of %d bytes, want at most %d", size, batchBytes)
				}
			}
			if len(sink.sent()) == 0 {
				t.Error("got no batch, want some")
			}
		})
	})

	t.Run("a batch under way when the lease goes is no attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{answer: func(ctx context.Context, _ Delivery) Result {
				<-ctx.Done()
				return Result{Outcome: Aborted}
			}}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 10})
			backlog(b, 10, 2)
			time.Sleep(time.Second)
			b.Drop(t.Context(), b.box.term("a"))
			same(t, "waiting", len(b.box.waiting()), 10)
			same(t, "in flight", b.Stats().InFlight, 0)
			for _, r := range b.box.waiting() {
				same(t, "attempts", r.Attempts, 0)
			}
		})
	})

	t.Run("a panic of a sink is an answer, too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &fakeSink{answerBatch: func(context.Context, []Delivery) Result { panic("no") }}
			b := start(t, newOutbox(), Options{}, Target{Name: "app", Sink: sink, Batch: 10, Concurrency: 1})
			backlog(b, 10, 10)
			time.Sleep(time.Second)
			same(t, "delivered one by one", b.box.count("app", Delivered), 10)
		})
	})
}

func seqOf(d Delivery) (seq int) {
	_, _ = fmt.Sscanf(d.EventID, "evt_%d", &seq)
	return seq
}

func TestBatchOverHTTP(t *testing.T) {
	type received struct {
		id, count, attempt string
		body               struct {
			Type, Timestamp string
			Data            []struct {
				WebhookID string `json:"webhook_id"`
				Type      string
				Data      struct{ Text string }
			}
		}
	}
	var got []received
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		x := received{id: r.Header.Get("webhook-id"), count: r.Header.Get("leasehold-batch"), attempt: r.Header.Get("leasehold-attempt")}
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &x.body); err != nil {
			t.Errorf("got %s, want JSON: %v", b, err)
		}
		got = append(got, x)
	}))
	defer srv.Close()
	s := sinkFor(t, Target{URL: srv.URL, Batch: 10})
	all := []Delivery{
		{ID: "msg_1", Attempt: 1, Envelope: []byte(`{"type":"message","data":{"text":"one"}}`)},
		{ID: "msg_2", Attempt: 1, Envelope: []byte(`{"type":"reaction","data":{"text":"two"}}`)},
	}
	for range 2 {
		same(t, "outcome", s.DeliverBatch(t.Context(), all).Outcome, Taken)
	}
	same(t, "outcome", s.DeliverBatch(t.Context(), all[1:]).Outcome, Taken)
	x := got[0]
	same(t, "what is said of it", x.count+" "+x.attempt+" "+x.body.Type, "2 1 batch")
	same(t, "its events", fmt.Sprint(x.body.Data), "[{msg_1 message {one}} {msg_2 reaction {two}}]")
	if _, err := time.Parse(Timestamp, x.body.Timestamp); err != nil {
		t.Errorf("got %q, want a time", x.body.Timestamp)
	}
	if x.id != got[1].id || x.id == got[2].id || !strings.HasPrefix(x.id, "batch_") {
		t.Errorf("got the ids %s, %s and %s, want the same for the same events alone", x.id, got[1].id, got[2].id)
	}
}
