package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
)

func (r *runner) outbox(t *testing.T) {
	r.promise(t, "what waits is listed in the order of delivery, page by page", func(w *world) {
		s := w.node()
		term, other := w.hold("i"), w.hold("j")
		for n := range 5 {
			b := batch(term, fmt.Sprint(n))
			b.Events[0].Targets = []string{"log", "app"}
			_, err := s.Accept(w.ctx, b)
			w.must(err)
			w.accept(other, fmt.Sprint(n))
		}
		all := w.pending(s, "i")
		want(w, "deliveries", len(all), 10)
		var paged []delivery.Item
		seq, target := int64(0), ""
		for {
			page, err := s.Pending(w.ctx, "i", seq, target, 3)
			w.must(err)
			if len(page) == 0 {
				break
			}
			paged = append(paged, page...)
			seq, target = page[len(page)-1].Seq, page[len(page)-1].Target
		}
		if !slices.Equal(all, paged) {
			w.Errorf("got %v page by page, want %v", paged, all)
		}
		for n := 1; n < len(all); n++ {
			a, b := all[n-1], all[n]
			if a.Seq > b.Seq || (a.Seq == b.Seq && a.Target >= b.Target) {
				w.Errorf("got %v before %v, want the order of seq, then target", a, b)
			}
		}
		first := all[0]
		want(w, "installation", first.Installation, "i")
		want(w, "conversation", first.Conversation, "conversation")
		want(w, "thread", first.Thread, "thread")
		want(w, "type", first.Type, "message")
		want(w, "attempts", first.Attempts, 0)
		want(w, "due at once", first.NextAttempt.After(w.clock.Now()), false)
		want(w, "accepted", first.AcceptedAt.Equal(w.clock.Now()), true)
		want(w, "replay", first.Replay, false)
	})

	r.promise(t, "every delivery has a webhook id of its own, for ever", func(w *world) {
		s := w.node()
		term := w.hold("i")
		b := batch(term, "1", "2")
		b.Events[0].Targets = []string{"app", "log"}
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		before := w.pending(s, "i")
		ids := map[string]bool{}
		for _, d := range before {
			ids[d.WebhookID] = true
			want(w, "length", len(d.WebhookID), len("msg_")+26)
			got, err := s.Delivery(w.ctx, d.WebhookID)
			w.must(err)
			want(w, "found", got.EventSeq == d.Seq && got.Target == d.Target, true)
		}
		want(w, "ids", len(ids), 3)
		w.must(w.mark(s, delivery.Mark{Term: term, Seq: before[0].Seq, Target: before[0].Target, Count: true, Error: "refused"}))
		w.must(s.EndSession(w.ctx, "a"))
		after := w.pending(w.node(), "i")
		for n := range after {
			want(w, "webhook id after a failure and a restart", after[n].WebhookID, before[n].WebhookID)
		}
	})

	r.promise(t, "payloads carry what an envelope needs", func(w *world) {
		s := w.node()
		w.put("i", func(i *admin.Installation) { i.Labels = map[string]string{"tenant": "acme"} })
		w.open(s, "a")
		term := w.begin(s, "a", "i")
		w.accept(term, "1", "2")
		items := w.pending(s, "i")
		got, err := s.Payloads(w.ctx, []int64{items[1].Seq, items[0].Seq, 99999})
		w.must(err)
		want(w, "payloads", len(got), 2)
		slices.SortFunc(got, func(a, b delivery.Event) int { return int(a.Seq - b.Seq) })
		e := got[0]
		want(w, "seq", e.Seq, items[0].Seq)
		want(w, "installation", e.Installation, "i")
		want(w, "channel type", e.ChannelType, "fake")
		want(w, "label", e.Labels["tenant"], "acme")
		want(w, "accepted", e.AcceptedAt.Equal(w.clock.Now()), true)
		want(w, "body", string(e.Body), `{"id":"1"}`)
		shown, err := s.Event(w.ctx, e.ID)
		w.must(err)
		want(w, "the id is the one that is shown", shown.Seq, e.Seq)
		none, err := s.Payloads(w.ctx, nil)
		w.must(err)
		want(w, "payloads of nothing", len(none), 0)
	})

	r.write(t, "a delivered event waits no longer", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2")
		first := w.pending(s, "i")[0]
		var answers []error
		w.must(w.do(func() (err error) {
			answers, err = s.Mark(w.ctx, []delivery.Mark{delivered(term, first.Seq)})
			return err
		}))
		if w.form == persisted { // it waits no longer: there is nothing to mark
			want(w, "answer to the repeat", errors.Is(answers[0], delivery.ErrMarkFenced), true)
		} else {
			w.must(answers[0])
		}
		want(w, "waiting", len(w.pending(s, "i")), 1)
		d, err := s.Delivery(w.ctx, first.WebhookID)
		w.must(err)
		want(w, "state", d.State, "delivered")
		want(w, "attempts", d.Attempts, 1)
		want(w, "delivered at", d.DeliveredAt.Equal(w.clock.Now()), true)
		want(w, "no next attempt", d.NextAttempt.IsZero(), true)
	})

	r.promise(t, "a failed try waits as long as it is told, counts when it should, and may be given back", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		try := func(count bool, back int, wait time.Duration) delivery.Item {
			w.Helper()
			w.must(w.mark(s, delivery.Mark{Term: term, Seq: w.pending(s, "i")[0].Seq, Target: "app", Count: count, Back: back, Wait: wait, Error: "timeout"}))
			return w.pending(s, "i")[0]
		}
		got := try(true, 0, time.Minute)
		want(w, "attempts", got.Attempts, 1)
		want(w, "next attempt", got.NextAttempt.Equal(w.clock.Now().Add(time.Minute)), true)
		want(w, "attempts after one that does not count", try(false, 0, 0).Attempts, 1)
		want(w, "attempts after two more", func() int { try(true, 0, 0); return try(true, 0, 0).Attempts }(), 3)
		want(w, "attempts after two were given back", try(false, 2, 0).Attempts, 1)
		want(w, "attempts never below none", try(false, 9, 0).Attempts, 0)
		d, err := s.Delivery(w.ctx, got.WebhookID)
		w.must(err)
		want(w, "last error", d.LastError, "timeout")
		want(w, "state", d.State, "pending")
	})

	r.write(t, "a dead letter keeps its reason and its payload", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		item := w.pending(s, "i")[0]
		w.must(w.do(func() error {
			_, err := s.Mark(w.ctx, []delivery.Mark{{Term: term, Seq: item.Seq, Target: "app", State: delivery.Dead, Count: true, Error: "410 gone"}})
			return err
		}))
		want(w, "waiting", len(w.pending(s, "i")), 0)
		d, err := s.Delivery(w.ctx, item.WebhookID)
		w.must(err)
		want(w, "state", d.State, "dead")
		want(w, "reason", d.LastError, "410 gone")
		got, err := s.Payloads(w.ctx, []int64{item.Seq})
		w.must(err)
		want(w, "payload", string(got[0].Body), `{"id":"1"}`)
	})

	r.promise(t, "each mark is answered by itself", func(w *world) {
		s := w.node()
		term, other := w.hold("i"), w.hold("j")
		w.accept(term, "1", "2")
		w.accept(other, "1")
		items := append(w.pending(s, "i"), w.pending(s, "j")...)
		marks := []delivery.Mark{
			delivered(term, items[0].Seq),
			delivered(term, items[0].Seq), // waits no longer
			delivered(term, items[2].Seq), // of another lease
			delivered(term, 99999),        // of no event
			{Term: term, Seq: items[1].Seq, Target: "log", State: delivery.Delivered}, // of no such target
			delivered(other, items[2].Seq),
		}
		for name, stale := range staleTerms(term) {
			if name != "run" { // owner and epoch fence it
				marks = append(marks, delivered(stale, items[1].Seq))
			}
		}
		answers, err := s.Mark(w.ctx, marks)
		w.must(err)
		want(w, "answers", len(answers), len(marks))
		for n, err := range answers {
			if n == 0 || n == 5 {
				w.must(err)
			} else if !errors.Is(err, delivery.ErrMarkFenced) {
				w.Errorf("mark %d: got %v, want ErrMarkFenced", n, err)
			}
		}
		want(w, "waiting", len(w.pending(s, "i")), 1)
		none, err := s.Mark(w.ctx, nil)
		w.must(err)
		want(w, "answers to nothing", len(none), 0)
	})

	r.promise(t, "a mark of the term before counts: owner and epoch fence it, not its run", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		w.cursor(term, "bot") // its successor has begun
		w.must(w.mark(s, delivered(term, w.pending(s, "i")[0].Seq)))
	})

	r.promise(t, "what waits goes over to the next owner of the lease, and to nobody before", func(w *world) {
		s := w.node()
		old := w.hold("i")
		w.accept(old, "1", "2")
		items := w.pending(s, "i")
		w.must(s.EndSession(w.ctx, "a"))
		if err := w.mark(s, delivered(old, items[0].Seq)); !errors.Is(err, delivery.ErrMarkFenced) {
			w.Errorf("mark of a dead session: got %v, want ErrMarkFenced", err)
		}
		w.open(s, "b")
		term := w.begin(s, "b", "i")
		if err := w.mark(s, delivered(old, items[0].Seq)); !errors.Is(err, delivery.ErrMarkFenced) {
			w.Errorf("mark of the old owner: got %v, want ErrMarkFenced", err)
		}
		if !slices.Equal(w.pending(s, "i"), items) {
			w.Errorf("got %v waiting, want all of it: %v", w.pending(s, "i"), items)
		}
		w.must(w.mark(s, delivered(term, items[0].Seq)))
	})
}
