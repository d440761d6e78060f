package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
	"leasehold/store/sqlite"
)

// kill makes every waiting delivery of the held installation dead.
func (w *world) kill() {
	w.t.Helper()
	items, err := w.store.Pending(w.t.Context(), w.term.Installation, 0, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var marks []delivery.Mark
	for _, i := range items {
		marks = append(marks, delivery.Mark{Term: w.term, Seq: i.Seq, Target: i.Target, State: delivery.Dead, Error: "answered 500"})
	}
	errs, err := w.store.Mark(w.t.Context(), marks)
	if err := errors.Join(append(errs, err)...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deliveries(q url.Values) []admin.Delivery {
	w.t.Helper()
	page, err := w.client().Deliveries(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Items
}

func TestDeliveries(t *testing.T) {
	t.Run("pages show every delivery once, whatever the limit and the targets of an event", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(3, "a", "b", "c")
		w.accept(2, "a")
		for limit := 1; limit <= 12; limit++ {
			q := url.Values{"limit": {fmt.Sprint(limit)}}
			var seen []string
			for range 20 {
				page, err := w.client().Deliveries(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range page.Items {
					seen = append(seen, fmt.Sprintf("%d%s", d.EventSeq, d.Target))
				}
				if page.Next == "" {
					break
				}
				q.Set("before", page.Next)
			}
			slices.Sort(seen)
			if got, want := strings.Join(seen, " "), "1a 1b 1c 2a 2b 2c 3a 3b 3c 4a 5a"; got != want {
				t.Errorf("limit %d: got %s, want %s", limit, got, want)
			}
		}
	})

	t.Run("one that is dead is replayed under its id, and its lanes are woken", func(t *testing.T) {
		w := newWorld(t)
		p := &process{}
		w.options.Mode, w.options.Process = admin.Running, p
		w.put("acme")
		w.hold()
		w.accept(2, "app")
		w.kill()
		all := w.deliveries(url.Values{"state": {"dead"}})
		if len(all) != 2 || all[0].LastError != "answered 500" {
			t.Fatalf("got %+v, want two dead ones with their reason", all)
		}
		done, err := w.client().Replay(t.Context(), admin.Pick{IDs: []string{all[0].ID}})
		if err != nil || done.Count != 1 {
			t.Fatalf("replay: got %v, %v, want 1", done, err)
		}
		d, err := w.client().Delivery(t.Context(), all[0].ID)
		if err != nil || d.State != "pending" || d.Attempts != 0 {
			t.Errorf("after the replay: got %+v, %v, want pending without attempts", d, err)
		}
		if got := fmt.Sprint(p.woken); got != "[acme]" {
			t.Errorf("woken: got %s, want [acme]", got)
		}
		_, err = w.client().Replay(t.Context(), admin.Pick{IDs: []string{all[0].ID}})
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "is pending; only a dead or dropped one can be replayed") {
			t.Errorf("a second replay: got %v, want fault.Conflict with the state", err)
		}
	})

	t.Run("many are picked by filter, dead ones unless another state is named", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(3, "app", "log")
		w.kill()
		w.accept(2, "app")
		if done, err := w.client().Drop(t.Context(), admin.Pick{Target: "app"}); err != nil || done.Count != 3 || done.More {
			t.Errorf("drop of a target: got %+v, %v, want its 3 dead ones", done, err)
		}
		if done, err := w.client().Drop(t.Context(), admin.Pick{State: "pending", Installation: "acme"}); err != nil || done.Count != 2 {
			t.Errorf("drop of what waits: got %+v, %v, want 2", done, err)
		}
		if done, err := w.client().Replay(t.Context(), admin.Pick{State: "dropped", Target: "app"}); err != nil || done.Count != 5 {
			t.Errorf("replay of what was dropped: got %+v, %v, want 5", done, err)
		}
		if got := len(w.deliveries(url.Values{"state": {"dead"}, "target": {"log"}})); got != 3 {
			t.Errorf("dead ones of the other target: got %d, want 3", got)
		}
	})

	t.Run("lanes are woken when what they wait with is dropped", func(t *testing.T) {
		w := newWorld(t)
		p := &process{}
		w.options.Mode, w.options.Process = admin.Running, p
		w.put("acme")
		w.hold()
		w.accept(2, "app")
		w.kill()
		w.accept(1, "app")
		if done, err := w.client().Drop(t.Context(), admin.Pick{State: "dead"}); err != nil || done.Count != 2 || len(p.woken) > 0 {
			t.Errorf("drop of dead ones: got %+v, %v, woken %v, want 2 and nobody woken", done, err, p.woken)
		}
		if done, err := w.client().Drop(t.Context(), admin.Pick{State: "pending"}); err != nil || done.Count != 1 || !slices.Equal(p.woken, []string{"acme"}) {
			t.Errorf("drop of what waits: got %+v, %v, woken %v, want 1 and its lease woken", done, err, p.woken)
		}
	})

	t.Run("nothing is picked by accident", func(t *testing.T) {
		w := newWorld(t)
		for body, words := range map[string]string{
			`{}`:                                   "name ids, or a filter",
			`{"ids":["x"],"target":"app"}`:         "ids exclude the filters",
			`{"target":"app","state":"delivered"}`: "state: must be one of",
			`{"tagret":"app"}`:                     "tagret",
		} {
			w.want(w.do("POST", "/v1/deliveries/drop", body), 422, words)
		}
		w.want(w.do("POST", "/v1/deliveries/msg_x/drop", ""), http.StatusNotFound, "there is no delivery msg_x")
		w.want(w.do("POST", "/v1/deliveries/msg_x/replay", ""), http.StatusNotFound, "there is no delivery msg_x")
	})

	t.Run("one that is delivered cannot be dropped", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(1, "app")
		if _, err := w.store.Mark(t.Context(), []delivery.Mark{{Term: w.term, Seq: 1, Target: "app", State: delivery.Delivered, Count: true}}); err != nil {
			t.Fatal(err)
		}
		id := w.deliveries(nil)[0].ID
		w.want(w.do("POST", "/v1/deliveries/"+id+"/drop", ""), http.StatusConflict, "is delivered; only one that waits or is dead can be dropped")
	})
}

// tasks runs nothing.
type tasks struct{ err error }

func (f tasks) Status() []loop.Status {
	return []loop.Status{{Name: "sweeper", Runs: 2, LastSuccess: time.Unix(1000, 0)}, {Name: "upkeep"}}
}

func (f tasks) Trigger(_ context.Context, name string) error {
	if name != "sweeper" {
		return fault.Errorf(fault.NotFound, "no task is called %q", name)
	}
	return f.err
}

func TestTasks(t *testing.T) {
	t.Run("a list shows this process's runs, and what is kept of those it has not made", func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"sweeper", "upkeep", "gone"} {
			if err := w.store.SaveTaskRun(t.Context(), admin.TaskRun{Task: name, LastSuccess: time.Unix(500, 0), Failures: 3, LastError: "disk", Result: "deleted 4 events"}); err != nil {
				t.Fatal(err)
			}
		}
		w.options.Tasks = tasks{}
		page, err := w.client().Tasks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range page.Items {
			got = append(got, fmt.Sprintf("%s %d %d %s", x.Name, x.LastSuccess.Unix(), x.ConsecutiveFailures, x.Result))
		}
		want := []string{"gone 500 3 deleted 4 events", "sweeper 1000 0 deleted 4 events", "upkeep 500 3 deleted 4 events"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("a task that fails is told with its error, one that is not there by name", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("POST", "/v1/tasks/sweeper/run", ""), http.StatusServiceUnavailable, "leasehold run")
		w.options.Tasks = tasks{}
		if x, err := w.client().RunTask(t.Context(), "sweeper"); err != nil || x.Name != "sweeper" {
			t.Errorf("got %+v, %v, want the task", x, err)
		}
		w.want(w.do("POST", "/v1/tasks/nothing/run", ""), http.StatusNotFound, "no task is called")
		w.options.Tasks = tasks{errors.New("table event: disk I/O error")}
		w.want(w.do("POST", "/v1/tasks/sweeper/run", ""), http.StatusServiceUnavailable, "task sweeper: table event: disk I/O error")
	})
}

func TestAStoreThatFails(t *testing.T) {
	closed, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string]string{"/v1/deliveries/drop": "drop deliveries", "/v1/deliveries/replay": "replay deliveries"} {
		t.Run("what could not be done is said once: "+words, func(t *testing.T) {
			w := newWorld(t)
			w.options.Store = closed
			w.want(w.do("POST", path, `{"ids":["msg_1"]}`), http.StatusServiceUnavailable, `"detail":"`+words+": the store is closed")
		})
	}
}
