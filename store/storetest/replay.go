package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/engine"
)

func (r *runner) replay(t *testing.T) {
	r.write(t, "a delivered event waits again when it is asked for, and one that waits is left alone", func(w *world) {
		s := w.node()
		term := w.hold("i")
		ids := w.letters(term)
		before := w.pending(s, "i")
		var got []admin.Delivery
		w.must(w.do(func() (err error) {
			got, err = s.RedeliverDeliveries(w.ctx, []string{ids["delivered"], ids["dead"], ids["dropped"], ids["pending"], "msg_unknown"})
			return err
		}))
		if w.form == persisted { // they wait already
			want(w, "replayed by the repeat", len(got), 0)
		} else {
			want(w, "replayed", len(got), 3)
			want(w, "state", got[0].State, "pending")
			want(w, "replay", got[0].Replay, true)
			want(w, "lease to wake", got[0].Lease, "i")
		}
		items := w.pending(s, "i")
		want(w, "waiting", len(items), 4)
		for n, id := range []string{ids["delivered"], ids["dead"], ids["dropped"]} {
			want(w, "webhook id", items[n].WebhookID, id)
			want(w, "attempts", items[n].Attempts, 0)
			want(w, "marked as a replay", items[n].Replay, true)
			want(w, "due", items[n].NextAttempt.After(w.clock.Now()), false)
		}
		want(w, "what waited", items[3], before[0])
		d, err := s.Delivery(w.ctx, ids["delivered"])
		w.must(err)
		want(w, "is not delivered any more", d.DeliveredAt.IsZero(), true)
		w.must(w.mark(s, delivered(term, items[0].Seq)))
	})

	r.promise(t, "what was delivered or given up says when, and that it was a replay", func(w *world) {
		s := w.node()
		term := w.hold("i")
		ids := w.letters(term)
		for state, id := range ids {
			d, err := s.Delivery(w.ctx, id)
			w.must(err)
			want(w, state+": delivered at", d.DeliveredAt.Equal(w.clock.Now()), state == "delivered")
			want(w, state+": given up at", d.GivenUpAt.Equal(w.clock.Now()), state == "dead" || state == "dropped")
			want(w, state+": replay", d.Replay, false)
		}
	})

	// history is one event an hour for the target "app" of i, from 1 on: 1 is delivered
	// late, at the hour of 5; 2 at once; 3 is dead at once; 4 waits. 5 is delivered at
	// once, a command of j for "app" and "log".
	history := func(w *world) (start time.Time) {
		i, j := w.hold("i"), w.hold("j")
		start = w.clock.Now()
		for n := 1; n <= 5; n++ {
			b := batch(i, fmt.Sprint(n))
			if n == 5 {
				b = batch(j, "5")
				b.Events[0].Event.Type, b.Events[0].Targets = "command", []string{"app", "log"}
			}
			_, err := w.s.Accept(w.ctx, b)
			w.must(err)
			items := w.pending(w.s, b.Term.Installation)
			m := delivered(b.Term, items[len(items)-1].Seq)
			switch n {
			case 2:
				w.must(w.mark(w.s, m))
			case 3:
				m.State = delivery.Dead
				w.must(w.mark(w.s, m))
			case 5:
				m.Target = "app"
				w.must(w.mark(w.s, m))
				m.Target = "log"
				w.must(w.mark(w.s, m))
				w.must(w.mark(w.s, delivered(i, w.pending(w.s, "i")[0].Seq)))
			}
			w.clock.Step(time.Hour)
		}
		return start
	}
	hours := func(start time.Time, n float64) time.Time { return start.Add(time.Duration(n * float64(time.Hour))) }
	for _, c := range []struct {
		name        string
		since, till float64 // hours of the history; event n is accepted at n-1
		change      func(*admin.ReplayQuery)
		want        string
	}{
		{"all that is over", 0, 9, nil, "1 2 3 5"},
		{"what was accepted in the window, or ended in it", 1, 3, nil, "2 3"},
		{"what ended in the window, however long it had waited", 3.5, 4.5, nil, "1 5"},
		{"since is in the window and until is not", 1, 2, nil, "2"},
		{"of one installation", 0, 9, func(q *admin.ReplayQuery) { q.Installation = "j" }, "5"},
		{"of one type", 0, 9, func(q *admin.ReplayQuery) { q.Type = "message" }, "1 2 3"},
		{"of another target", 0, 9, func(q *admin.ReplayQuery) { q.Target = "log" }, "5"},
		{"of a target that nothing went to", 0, 9, func(q *admin.ReplayQuery) { q.Target = "other" }, ""},
		{"of a time in which nothing happened", 7, 9, nil, ""},
	} {
		r.promise(t, "replayable: "+c.name, func(w *world) {
			s := w.node()
			start := history(w)
			q := admin.ReplayQuery{Target: "app", Since: hours(start, c.since), Until: hours(start, c.till)}
			if c.change != nil {
				c.change(&q)
			}
			want(w, "found", w.replayable(s, q), c.want)
			q.Limit = 1 // and the same, a look at a time
			want(w, "found one by one", w.replayable(s, q), c.want)
		})
	}

	r.promise(t, "what can be replayed is looked at a page at a time", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2", "3")
		for _, item := range w.pending(s, "i") {
			w.must(w.mark(s, delivered(term, item.Seq)))
		}
		q := admin.ReplayQuery{Target: "app", Since: w.clock.Now(), Until: w.clock.Now().Add(time.Second), Limit: 2}
		found, next, err := s.Replayable(w.ctx, q)
		w.must(err)
		want(w, "found", len(found), 2)
		want(w, "next", next, found[1].EventSeq)
		q.After = next
		found, next, err = s.Replayable(w.ctx, q)
		w.must(err)
		want(w, "found on the second page", len(found), 1)
		want(w, "next after the last", next, 0)
	})

	r.promise(t, "what nobody would deliver any more is not replayable", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		w.must(w.mark(s, delivered(term, 1)))
		w.must(s.RemoveInstallation(w.ctx, "i"))
		_, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		_, err = s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "found", w.replayable(s, admin.ReplayQuery{Target: "app", Until: w.clock.Now().Add(time.Hour)}), "")
		d, err := s.Deliveries(w.ctx, admin.DeliveryQuery{})
		w.must(err)
		got, err := s.RedeliverDeliveries(w.ctx, []string{d[0].ID})
		w.must(err)
		want(w, "replayed", len(got), 0)
	})
}

// replayable reads all that q selects and returns the platform ids of the events,
// in the order of the answers.
func (w *world) replayable(s Store, q admin.ReplayQuery) string {
	w.Helper()
	events, err := s.Events(w.ctx, admin.EventQuery{Limit: 500})
	w.must(err)
	var ids []string
	for {
		found, next, err := s.Replayable(w.ctx, q)
		w.must(err)
		for _, d := range found {
			n := slices.IndexFunc(events, func(e admin.Event) bool { return e.Seq == d.EventSeq })
			ids = append(ids, events[n].PlatformID)
			want(w, "target", d.Target, q.Target)
		}
		if next == 0 {
			return strings.Join(ids, " ")
		}
		q.After = next
	}
}
