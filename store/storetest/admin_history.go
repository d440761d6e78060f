package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
)

func (r *runner) events(t *testing.T) {
	// fill stores events 0 to 9, the even ones of i, the odd ones of j.
	fill := func(w *world) {
		i, j := w.hold("i"), w.hold("j")
		for n := range 10 {
			b := batch([]channelTerm{i, j}[n%2], fmt.Sprint(n))
			b.Events[0].Event.Type = []string{"message", "command", "raw"}[n%3]
			_, err := w.s.Accept(w.ctx, b)
			w.must(err)
		}
	}
	ids := func(events []admin.Event) (ids []string) {
		for _, e := range events {
			ids = append(ids, e.PlatformID)
		}
		return ids
	}
	for _, q := range []struct {
		name  string
		query admin.EventQuery
		want  []string
	}{
		{"newest first", admin.EventQuery{}, []string{"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}},
		{"a page", admin.EventQuery{Limit: 3}, []string{"9", "8", "7"}},
		{"of one installation", admin.EventQuery{Installation: "i", Limit: 3}, []string{"8", "6", "4"}},
		{"of one type", admin.EventQuery{Type: "raw"}, []string{"8", "5", "2"}},
		{"of one type and installation", admin.EventQuery{Type: "raw", Installation: "j"}, []string{"5"}},
		{"before another", admin.EventQuery{Before: 4}, []string{"2", "1", "0"}},
		{"of one installation before another", admin.EventQuery{Before: 6, Installation: "i"}, []string{"4", "2", "0"}},
		{"after another, oldest first", admin.EventQuery{After: 7}, []string{"7", "8", "9"}},
		{"of one installation after another", admin.EventQuery{After: 3, Installation: "j", Limit: 2}, []string{"3", "5"}},
		{"of one type after another", admin.EventQuery{After: 3, Type: "raw"}, []string{"5", "8"}},
		{"of nobody", admin.EventQuery{Installation: "nobody"}, nil},
	} {
		r.promise(t, "events are listed: "+q.name, func(w *world) {
			s := w.node()
			fill(w)
			got, err := s.Events(w.ctx, q.query)
			w.must(err)
			if !slices.Equal(ids(got), q.want) {
				w.Errorf("got %v, want %v", ids(got), q.want)
			}
		})
	}

	r.promise(t, "a listed event has the journey of each delivery and no body", func(w *world) {
		s := w.node()
		term := w.hold("i")
		b := batch(term, "1", "2")
		b.Events[0].Targets = []string{"app", "log"}
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		w.must(w.mark(s, delivered(term, w.pending(s, "i")[0].Seq)))
		got, err := s.Events(w.ctx, admin.EventQuery{})
		w.must(err)
		want(w, "deliveries of the newest", len(got[0].Deliveries), 1)
		want(w, "deliveries of the first", len(got[1].Deliveries), 2)
		want(w, "state", got[1].Deliveries[0].State, "delivered")
		want(w, "body", len(got[0].Body), 0)
		one, err := s.Event(w.ctx, got[1].ID)
		w.must(err)
		want(w, "body of one", string(one.Body), `{"id":"1"}`)
		want(w, "deliveries of one", len(one.Deliveries), 2)
	})

	r.promise(t, "an event that is not there is not found", func(w *world) {
		s := w.node()
		for _, id := range []string{"", "evt_nonsense", "evt_0000000000010", "1"} {
			_, err := s.Event(w.ctx, id)
			want(w, "not found: "+id, fault.Is(err, fault.NotFound), true)
		}
	})

	r.promise(t, "a page has at most 500", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for n := range 6 {
			var names []string
			for m := range 100 {
				names = append(names, fmt.Sprint(n, "-", m))
			}
			w.accept(term, names...)
		}
		got, err := s.Events(w.ctx, admin.EventQuery{Limit: 10_000})
		w.must(err)
		want(w, "events", len(got), 500)
		got, err = s.Events(w.ctx, admin.EventQuery{})
		w.must(err)
		want(w, "events by default", len(got), 50)
		all, err := s.Deliveries(w.ctx, admin.DeliveryQuery{Limit: 10_000})
		w.must(err)
		want(w, "deliveries", len(all), 500)
	})
}

// letters makes deliveries in every state: 1 delivered, 2 dead, 3 dropped and 4
// waiting, and returns their webhook ids by that.
func (w *world) letters(t channelTerm) map[string]string {
	w.Helper()
	w.accept(t, "1", "2", "3", "4")
	items := w.pending(w.s, t.Installation)
	w.must(w.mark(w.s, delivered(t, items[0].Seq)))
	w.must(w.mark(w.s, delivery.Mark{Term: t, Seq: items[1].Seq, Target: "app", State: delivery.Dead, Count: true, Error: "refused"}))
	n, err := w.s.DropDeliveries(w.ctx, []string{items[2].WebhookID})
	w.must(err)
	want(w, "dropped", n, 1)
	return map[string]string{
		"delivered": items[0].WebhookID, "dead": items[1].WebhookID, "dropped": items[2].WebhookID, "pending": items[3].WebhookID,
	}
}

func (r *runner) deliveries(t *testing.T) {
	r.promise(t, "deliveries are listed by state, target and installation, newest first", func(w *world) {
		s := w.node()
		term := w.hold("i")
		byState := w.letters(term)
		other := w.hold("j")
		b := batch(other, "1")
		b.Events[0].Targets = []string{"log"}
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		for state, id := range byState {
			got, err := s.Deliveries(w.ctx, admin.DeliveryQuery{State: state, Target: "app"})
			w.must(err)
			want(w, state, len(got), 1)
			want(w, "id of the "+state, got[0].ID, id)
		}
		for what, q := range map[string]admin.DeliveryQuery{
			"5": {}, "4": {Target: "app"}, "1": {Installation: "j"}, "0": {Installation: "j", Target: "app"}, "2": {State: "pending"},
		} {
			got, err := s.Deliveries(w.ctx, q)
			w.must(err)
			want(w, fmt.Sprintf("%+v", q), fmt.Sprint(len(got)), what)
			if !slices.IsSortedFunc(got, func(a, b admin.Delivery) int { return int(b.EventSeq - a.EventSeq) }) {
				w.Errorf("%+v: got %v, want the newest first", q, got)
			}
		}
		all, err := s.Deliveries(w.ctx, admin.DeliveryQuery{Limit: 2})
		w.must(err)
		rest, err := s.Deliveries(w.ctx, admin.DeliveryQuery{Before: all[1].EventSeq})
		w.must(err)
		want(w, "a page and the rest", len(all)+len(rest), 5)
		want(w, "lease", rest[0].Lease, "i")
		_, err = s.Deliveries(w.ctx, admin.DeliveryQuery{State: "nonsense"})
		want(w, "an unknown state is invalid", fault.Is(err, fault.Invalid), true)
	})

	r.promise(t, "a delivery that is not there is not found", func(w *world) {
		s := w.node()
		for _, id := range []string{"", "msg_nonsense", "msg_000000004000000000000000a0"} {
			_, err := s.Delivery(w.ctx, id)
			want(w, "not found: "+id, fault.Is(err, fault.NotFound), true)
		}
	})

	r.write(t, "a replay makes dead and dropped deliveries wait again as they were", func(w *world) {
		s := w.node()
		term := w.hold("i")
		ids := w.letters(term)
		var got []admin.Delivery
		w.must(w.do(func() (err error) {
			got, err = s.ReplayDeliveries(w.ctx, []string{ids["delivered"], ids["dead"], ids["dropped"], ids["pending"], "msg_unknown"})
			return err
		}))
		if w.form == persisted { // they wait already
			want(w, "replayed by the repeat", len(got), 0)
		} else {
			want(w, "replayed", len(got), 2)
			want(w, "state", got[0].State, "pending")
			want(w, "lease to wake", got[0].Lease, "i")
			want(w, "installation", got[0].Installation, "i")
		}
		items := w.pending(s, "i")
		want(w, "waiting", len(items), 3)
		for n, wanted := range []string{ids["dead"], ids["dropped"], ids["pending"]} {
			want(w, "webhook id", items[n].WebhookID, wanted)
			want(w, "attempts", items[n].Attempts, 0)
			want(w, "due", items[n].NextAttempt.After(w.clock.Now()), false)
			want(w, "marked as a replay", items[n].Replay, n < 2)
		}
		w.must(w.mark(s, delivered(term, items[0].Seq)))
	})

	r.promise(t, "a replay of a disabled installation shows its backlog again", func(w *world) {
		s := w.node()
		term := w.hold("i")
		ids := w.letters(term)
		w.must(w.mark(s, delivered(term, w.pending(s, "i")[0].Seq)))
		w.must(s.SetEnabled(w.ctx, "i", false))
		snap := w.snapshot(s)
		want(w, "backlog before", snap.Installations[0].Backlog, false)
		_, err := s.ReplayDeliveries(w.ctx, []string{ids["dead"]})
		w.must(err)
		snap, err = s.List(w.ctx, snap.Version)
		w.must(err)
		want(w, "unchanged", snap.Unchanged, false)
		want(w, "backlog", snap.Installations[0].Backlog, true)
	})

	r.write(t, "a drop gives up what waits or is dead, and its holder cannot mark it any more", func(w *world) {
		s := w.node()
		term := w.hold("i")
		ids := w.letters(term)
		var n int
		w.must(w.do(func() (err error) {
			n, err = s.DropDeliveries(w.ctx, []string{ids["delivered"], ids["dead"], ids["dropped"], ids["pending"], "msg_unknown"})
			return err
		}))
		if w.form != persisted { // the count was the answer that was lost
			want(w, "dropped", n, 2)
		}
		for was, id := range ids {
			d, err := s.Delivery(w.ctx, id)
			w.must(err)
			wanted := "dropped"
			if was == "delivered" {
				wanted = was
			}
			want(w, "state of what was "+was, d.State, wanted)
		}
		d, err := s.Delivery(w.ctx, ids["pending"])
		w.must(err)
		want(w, "mark of a dropped one", w.mark(s, delivered(term, d.EventSeq)) != nil, true)
	})
}

func (r *runner) nodes(t *testing.T) {
	r.promise(t, "nodes are the live sessions with what they hold", func(w *world) {
		s := w.node()
		w.hold("i")
		w.hold("j")
		w.open(w.h.Open(), "b")
		got, err := s.Nodes(w.ctx)
		w.must(err)
		want(w, "nodes", len(got), 2)
		want(w, "node", got[0], admin.Node{
			Session: "a", Instance: "instance of a", Name: "node of a", Version: "1", OpenedAt: w.clock.Now().UTC(), Leases: 2, Weight: 1,
		})
		want(w, "leases of the other", got[1].Leases, 0)
		w.must(s.DrainNode(w.ctx, "instance of b", true))
		got, err = s.Nodes(w.ctx)
		w.must(err)
		want(w, "drained", fmt.Sprint(got[0].Drained, got[0].Draining, got[1].Drained, got[1].Draining), "false false true true")
	})

	r.promise(t, "totals count what there is", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.put("j")
		w.put("gone")
		w.must(s.RemoveInstallation(w.ctx, "gone"))
		w.letters(term)
		w.must(s.SaveStatus(w.ctx, []engine.TermStatus{{Term: term, Status: engine.LinkStatus{Installation: "i", State: engine.Connected}}}))
		got, err := s.Totals(w.ctx)
		w.must(err)
		want(w, "installations", got.Installations, 2)
		want(w, "connected", got.Links["connected"], 1)
		want(w, "never reported", got.Links[""], 1)
		want(w, "pending", got.Deliveries["pending"], 1)
		want(w, "dead", got.Deliveries["dead"], 1)
		want(w, "history is not counted", len(got.Deliveries), 2)
		want(w, "has a size", got.Bytes > 0, true)
	})

	r.write(t, "the last run of a task is kept", func(w *world) {
		s := w.node()
		run := admin.TaskRun{Task: "sweeper", LastStart: w.clock.Now().UTC(), Failures: 2, LastError: "disk full"}
		w.must(s.SaveTaskRun(w.ctx, run))
		run.LastStart, run.LastSuccess = run.LastStart.Add(time.Hour), run.LastStart.Add(time.Hour)
		run.Failures, run.LastError, run.Result = 0, "", "deleted 7 events"
		w.must(w.do(func() error { return s.SaveTaskRun(w.ctx, run) }))
		got, err := s.TaskRuns(w.ctx)
		w.must(err)
		want(w, "runs", len(got), 1)
		want(w, "run", got[0], run)
	})
}
