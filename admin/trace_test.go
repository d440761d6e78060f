package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"leasehold/admin"
)

func TestTrace(t *testing.T) {
	words := func(steps []admin.Step) string {
		var all []string
		for _, s := range steps {
			all = append(all, strings.TrimSuffix(s.What+" "+s.Target, " "))
		}
		return strings.Join(all, ", ")
	}

	t.Run("an event's steps are told in the order of time, what is to come last", func(t *testing.T) {
		w := newWorld(t)
		w.options.Mode, w.options.Process = admin.Running, &process{targets: []admin.Target{
			{Name: "app", State: "ok"}, {Name: "backup", State: "down", Reason: "connection refused"}, {Name: "log", State: "ok"},
		}}
		w.put("acme")
		w.hold()
		w.accept(1, "log", "backup", "app")
		id := w.deliveries(nil)[0].EventID
		if got, err := w.client().Trace(t.Context(), id); err != nil || words(got.Steps) != "happened, accepted, waits app, waits backup, waits log" {
			t.Fatalf("before any delivery: got %v, %v", words(got.Steps), err)
		}
		w.kill()
		all := w.deliveries(nil) // log, backup, app
		if _, err := w.client().ReplayEvents(t.Context(), admin.Replay{Events: []string{id}, Target: "backup"}); err != nil {
			t.Fatal(err)
		}
		got, err := w.client().Trace(t.Context(), all[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if words(got.Steps) != "happened, accepted, dead app, dead log, waits backup" {
			t.Errorf("got %s, want what has ended before what waits, of one time by target", words(got.Steps))
		}
		if got.Event.ID != id || len(got.Event.Body) > 0 {
			t.Errorf("got event %s with %d bytes of body, want %s without", got.Event.ID, len(got.Event.Body), id)
		}
		if got := got.Steps[3]; got.Detail != "last error: answered 500" || got.At.IsZero() || got.Delivery != all[0].ID {
			t.Errorf("the dead one: got %+v, want its reason, its time and its id", got)
		}
		if got := got.Steps[4]; got.Detail != "the target is down: connection refused; last error: answered 500; a replay" {
			t.Errorf("the one that waits: got %q, want what keeps it, its last error and that it is a replay", got.Detail)
		}
	})

	t.Run("what is not there is said", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("GET", "/v1/trace/msg_x", ""), http.StatusNotFound, "there is no event msg_x")
		w.want(w.do("GET", "/v1/trace/evt_x?limit=1", ""), 422, "is not a parameter here")
	})
}
