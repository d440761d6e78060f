package admin_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
)

// deliver marks all that waits for the held installation as delivered.
func (w *world) deliver() {
	w.t.Helper()
	items, err := w.store.Pending(w.t.Context(), w.term.Installation, 0, "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	var marks []delivery.Mark
	for _, i := range items {
		marks = append(marks, delivery.Mark{Term: w.term, Seq: i.Seq, Target: i.Target, State: delivery.Delivered, Count: true})
	}
	errs, err := w.store.Mark(w.t.Context(), marks)
	if err := errors.Join(append(errs, err)...); err != nil {
		w.t.Fatal(err)
	}
}

func TestReplay(t *testing.T) {
	anHourAgo := func() time.Time { return time.Now().Add(-time.Hour) }

	t.Run("what was delivered to a target in a window waits again, more than one batch of it", func(t *testing.T) {
		w := newWorld(t)
		p := &process{targets: []admin.Target{{Name: "app"}, {Name: "log"}}}
		w.options.Mode, w.options.Process = admin.Running, p
		w.put("acme")
		w.hold()
		w.accept(1100, "app", "log")
		w.deliver()
		w.accept(3, "app")
		before := w.deliveries(nil)
		dry, err := w.client().ReplayEvents(t.Context(), admin.Replay{Target: "app", Since: anHourAgo(), DryRun: true})
		if err != nil || dry.Count != 1100 || len(p.woken) > 0 {
			t.Fatalf("dry run: got %+v, %v, woken %v, want 1100 and nobody woken", dry, err, p.woken)
		}
		if after := w.deliveries(nil); !slices.Equal(before, after) {
			t.Errorf("dry run: got %v, want nothing changed from %v", after, before)
		}
		done, err := w.client().ReplayEvents(t.Context(), admin.Replay{Target: "app", Since: anHourAgo()})
		if err != nil || done.Count != 1100 || done.Next != 0 {
			t.Fatalf("got %+v, %v, want 1100", done, err)
		}
		if got := fmt.Sprint(slices.Compact(p.woken)); got != "[acme]" {
			t.Errorf("woken: got %s, want [acme]", got)
		}
		items, err := w.store.Pending(t.Context(), "acme", 0, "", 10_000)
		if err != nil || len(items) != 1103 {
			t.Errorf("waiting: got %d, %v, want 1103", len(items), err)
		}
		if again, err := w.client().ReplayEvents(t.Context(), admin.Replay{Target: "app", Since: anHourAgo()}); err != nil || again.Count != 0 {
			t.Errorf("a repeat while they wait: got %+v, %v, want 0", again, err)
		}
	})

	t.Run("the deliveries of named events wait again, of one target if one is named", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(2, "app", "log")
		w.deliver()
		w.accept(1, "app")
		page, err := w.client().Events(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		waits, second, first := page.Items[0].ID, page.Items[1].ID, page.Items[2].ID
		if done, err := w.client().ReplayEvents(t.Context(), admin.Replay{Events: []string{first, waits}}); err != nil || done.Count != 2 || done.Waiting != 1 {
			t.Errorf("got %+v, %v, want 2 and the one that waits anyway", done, err)
		}
		if done, err := w.client().ReplayEvents(t.Context(), admin.Replay{Events: []string{second}, Target: "log"}); err != nil || done.Count != 1 {
			t.Errorf("to one target: got %+v, %v, want 1", done, err)
		}
		w.want(w.do("POST", "/v1/events/replay", `{"events":["`+first+`","evt_x"]}`), http.StatusNotFound, "there is no event evt_x")
	})

	t.Run("nothing is replayed by accident", func(t *testing.T) {
		w := newWorld(t)
		w.options.Mode, w.options.Process = admin.Running, &process{targets: []admin.Target{{Name: "app"}}}
		for body, words := range map[string]string{
			`{}`:                               "target: name the one",
			`{"target":"app"}`:                 "since: say from when on",
			`{"since":"2026-11-30T02:00:00Z"}`: "target: name the one",
			`{"target":"ap","since":"2026-11-30T02:00:00Z","until":"2026-11-30T03:00:00Z"}`:        `there is no target \"ap\"; there are: app`,
			`{"target":"app","since":"2026-11-30T02:00:00Z","until":"2026-11-30T02:00:00Z"}`:       "is not before until",
			`{"events":["evt_x"],"since":"2026-11-30T02:00:00Z"}`:                                  "events exclude since",
			`{"events":["evt_x"],"type":"message"}`:                                                "events exclude since",
			`{"target":"app","since":"2026-11-30T02:00:00Z","until":"2026-11-30T03:00:00Z","x":1}`: "x",
		} {
			w.want(w.do("POST", "/v1/events/replay", body), 422, words)
		}
	})
}
