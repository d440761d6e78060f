package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/internal/fault"
)

func (r *runner) accept(t *testing.T) {
	r.write(t, "a batch stores its events once, a delivery for each target, and the cursor", func(w *world) {
		s := w.node()
		term := w.hold("i")
		b := batch(term, "1", "2")
		b.Events[1].Targets = []string{"app", "log"}
		b.Cursor = []byte("two")
		var got engine.Accepted
		w.must(w.do(func() (err error) { got, err = s.Accept(w.ctx, b); return err }))
		if w.form == persisted {
			want(w, "the repeat", got, engine.Accepted{Duplicates: 2})
		} else {
			want(w, "duplicates", got.Duplicates, 0)
			want(w, "last seq", got.LastSeq, w.pending(s, "i")[2].Seq)
		}
		if ids := w.stored(s, "i"); !slices.Equal(ids, []string{"1", "2"}) {
			w.Errorf("got events %v, want 1 and 2", ids)
		}
		var waiting []string
		for _, d := range w.pending(s, "i") {
			waiting = append(waiting, d.Target)
		}
		if !slices.Equal(waiting, []string{"app", "app", "log"}) {
			w.Errorf("got deliveries to %v, want app, app and log", waiting)
		}
		cursor, _ := w.cursor(term, "bot")
		want(w, "cursor", string(cursor), "two")
	})

	r.write(t, "what was heard before a restart is known after it", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2")
		w.must(s.EndSession(w.ctx, "a"))
		s = w.node()
		w.open(s, "b")
		term = w.begin(s, "b", "i")
		var got engine.Accepted
		w.must(w.do(func() (err error) { got, err = s.Accept(w.ctx, batch(term, "2", "3", "1", "3")); return err }))
		if w.form == persisted {
			want(w, "duplicates of the repeat", got.Duplicates, 4)
			want(w, "last seq of the repeat", got.LastSeq, 0)
		} else {
			want(w, "duplicates", got.Duplicates, 3)
		}
		if ids := w.stored(s, "i"); !slices.Equal(ids, []string{"1", "2", "3"}) {
			w.Errorf("got events %v, want 1, 2 and 3", ids)
		}
		want(w, "deliveries", len(w.pending(s, "i")), 3)
	})

	r.promise(t, "an event's id is its installation's own", func(w *world) {
		s := w.node()
		i, j := w.hold("i"), w.hold("j")
		want(w, "duplicates of the first", w.accept(i, "1").Duplicates, 0)
		want(w, "duplicates of the other's", w.accept(j, "1").Duplicates, 0)
		want(w, "events", len(w.stored(s, "i"))+len(w.stored(s, "j")), 2)
	})

	r.promise(t, "batches take effect in the order of the calls, and so do cursors", func(w *world) {
		s := w.node()
		term := w.hold("i")
		last := int64(0)
		for n := range 30 {
			b := batch(term, fmt.Sprint(n))
			b.Cursor = fmt.Append(nil, n)
			got, err := s.Accept(w.ctx, b)
			w.must(err)
			if got.LastSeq <= last {
				w.Fatalf("got seq %d after %d, want a larger one", got.LastSeq, last)
			}
			last = got.LastSeq
		}
		cursor, term := w.cursor(term, "bot")
		want(w, "cursor", string(cursor), "29")
		_, err := s.Accept(w.ctx, batch(term, "without a cursor"))
		w.must(err)
		cursor, _ = w.cursor(term, "bot")
		want(w, "cursor after a batch without one", string(cursor), "29")
	})

	r.write(t, "a cursor alone is stored", func(w *world) {
		s := w.node()
		term := w.hold("i")
		var got engine.Accepted
		w.must(w.do(func() (err error) {
			got, err = s.Accept(w.ctx, engine.AcceptRequest{Term: term, Identity: "bot", Cursor: []byte("here")})
			return err
		}))
		want(w, "accepted", got, engine.Accepted{})
		cursor, _ := w.cursor(term, "bot")
		want(w, "cursor", string(cursor), "here")
	})

	r.promise(t, "a cursor never goes back to an earlier owner's", func(w *world) {
		s := w.node()
		old := w.hold("i")
		w.must(s.EndSession(w.ctx, "a"))
		w.open(s, "b")
		term := w.begin(s, "b", "i")
		b := batch(term, "2")
		b.Cursor = []byte("two")
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		b = batch(old, "1")
		b.Cursor = []byte("one")
		if _, err := s.Accept(w.ctx, b); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("got %v, want ErrFenced", err)
		}
		cursor, _ := w.cursor(term, "bot")
		want(w, "cursor", string(cursor), "two")
	})

	r.promise(t, "a body comes back byte for byte, whatever is in it", func(w *world) {
		s := w.node()
		term := w.hold("i")
		bodies := [][]byte{
			[]byte("{\"a\":\"b\x00c\"}"), {0xff, 0xfe, 0x00, 0xc3, 0x28}, {}, bytes.Repeat([]byte("0123456789abcdef"), 1<<19), // 8 MiB
		}
		b := engine.AcceptRequest{Term: term, Identity: "bot"}
		for n, body := range bodies {
			h := heard(fmt.Sprint(n), "app")
			h.Body = body
			h.Event.Conversation.ID = "c\x00\xff"
			b.Events = append(b.Events, h)
		}
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		for _, d := range w.pending(s, "i") {
			got, err := s.Payloads(w.ctx, []int64{d.Seq})
			w.must(err)
			e, err := s.Event(w.ctx, got[0].ID)
			w.must(err)
			var n int
			_, err = fmt.Sscan(e.PlatformID, &n)
			w.must(err)
			want(w, "body "+e.PlatformID, bytes.Equal(got[0].Body, bodies[n]), true)
			want(w, "body shown "+e.PlatformID, bytes.Equal(e.Body, bodies[n]), true)
			want(w, "conversation", d.Conversation, "c\x00\xff")
		}
		want(w, "deliveries", len(w.pending(s, "i")), len(bodies))
	})

	r.promise(t, "concurrent batches share commits and lose nothing", func(w *world) {
		s := w.node()
		const leases, each = 8, 25
		var wg sync.WaitGroup
		for l := range leases {
			id := fmt.Sprintf("i%d", l)
			term := w.hold(id)
			wg.Go(func() {
				for n := range each {
					if _, err := s.Accept(w.ctx, batch(term, fmt.Sprint(n), fmt.Sprint(n-1))); err != nil {
						w.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for l := range leases {
			want(w, "events", len(w.stored(s, fmt.Sprintf("i%d", l))), each+1) // and the one before the first
		}
	})

	r.promise(t, "a batch that is refused harms no other of its commit", func(w *world) {
		s := w.node()
		good, stale := w.hold("good"), w.hold("stale")
		stale.Epoch--
		var wg sync.WaitGroup
		for n := range 60 {
			wg.Go(func() {
				term, id := good, fmt.Sprint(n)
				b := batch(term, id)
				switch n % 3 {
				case 1:
					b = batch(stale, id)
				case 2:
					b.Events = append(b.Events, heard("with a foreign event"))
					b.Events[1].Event.Installation = "no rider"
					b.Cursor = []byte("never")
				}
				_, err := s.Accept(w.ctx, b)
				switch {
				case n%3 == 0 && err != nil:
					w.Errorf("batch %d: got %v, want success", n, err)
				case n%3 == 1 && !errors.Is(err, engine.ErrFenced):
					w.Errorf("batch %d: got %v, want ErrFenced", n, err)
				case n%3 == 2 && !fault.Is(err, fault.Invalid):
					w.Errorf("batch %d: got %v, want an invalid event", n, err)
				}
			})
		}
		wg.Wait()
		want(w, "events", len(w.stored(s, "good")), 20)
		cursor, _ := w.cursor(good, "bot")
		want(w, "no cursor of a refused batch", cursor == nil, true)
	})

	r.promise(t, "a caller who stops waiting stops nobody else", func(w *world) {
		s := w.node()
		term := w.hold("i")
		gone, cancel := context.WithCancel(w.ctx)
		cancel()
		var wg sync.WaitGroup
		for n := range 40 {
			wg.Go(func() {
				ctx := w.ctx
				if n%2 == 1 {
					ctx = gone
				}
				_, err := s.Accept(ctx, batch(term, fmt.Sprint(n)))
				if n%2 == 0 && err != nil {
					w.Errorf("batch %d: got %v, want success", n, err)
				}
				if n%2 == 1 && !errors.Is(err, context.Canceled) {
					w.Errorf("batch %d: got %v, want the caller's own end", n, err)
				}
			})
		}
		wg.Wait()
		if got := len(w.stored(s, "i")); got < 20 {
			w.Errorf("got %d events, want at least those that were waited for", got)
		}
	})

	r.promise(t, "an event of a rider is stored as its own, under the carrier's lease", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.put("r", via("i"))
		b := batch(term, "1", "1")
		b.Events[1].Event.Installation = "r"
		got, err := s.Accept(w.ctx, b)
		w.must(err)
		want(w, "duplicates", got.Duplicates, 0)
		want(w, "the carrier's events", len(w.stored(s, "i")), 1)
		want(w, "the rider's events", len(w.stored(s, "r")), 1)
		items := w.pending(s, "i")
		want(w, "deliveries of the lease", len(items), 2)
		want(w, "installation of the second", items[1].Installation, "r")
		want(w, "deliveries under the rider's id", len(w.pending(s, "r")), 0)
	})

	r.promise(t, "an event of an installation that does not ride on the term's refuses the batch", func(w *world) {
		s := w.node()
		term, other := w.hold("i"), w.hold("j")
		w.put("r", via("j"))
		for _, foreign := range []string{"j", "r", "nobody"} {
			b := batch(term, "1", "2")
			b.Events[1].Event.Installation = foreign
			b.Cursor = []byte("never")
			if _, err := s.Accept(w.ctx, b); !fault.Is(err, fault.Invalid) {
				w.Errorf("%s: got %v, want an invalid event", foreign, err)
			}
		}
		want(w, "events", len(w.stored(s, "")), 0)
		cursor, _ := w.cursor(term, "bot")
		want(w, "no cursor", cursor == nil, true)
		_, err := s.Accept(w.ctx, batch(other, "1"))
		w.must(err)
	})

	r.promise(t, "an event is shown with what was known of it", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		events, err := s.Events(w.ctx, admin.EventQuery{})
		w.must(err)
		e := events[0]
		want(w, "platform id", e.PlatformID, "1")
		want(w, "type", e.Type, "message")
		want(w, "conversation", e.Conversation, "conversation")
		want(w, "thread", e.Thread, "thread")
		want(w, "occurred", e.OccurredAt.UnixMilli(), 1_700_000_000_000)
		want(w, "accepted by the store's clock", e.AcceptedAt.Equal(w.clock.Now()), true)
		want(w, "epoch", e.Epoch, term.Epoch)
	})
}
