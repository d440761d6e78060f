package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/internal/fault"
)

// broken is a store that fails one question.
type broken struct {
	admin.Store
	err error
}

func (b broken) Totals(context.Context) (admin.Totals, error) { return admin.Totals{}, b.err }

// careless panics where it should answer.
type careless struct{ admin.Store }

func (careless) Totals(context.Context) (admin.Totals, error) { panic("the map is nil") }

func TestProblems(t *testing.T) {
	t.Run("a kind is a status and a type, and its words are the detail", func(t *testing.T) {
		w := newWorld(t)
		for kind, status := range map[fault.Kind]int{
			fault.Invalid: 422, fault.NotFound: 404, fault.Conflict: 409, fault.Denied: 403, fault.Temporary: 503,
			fault.Full: 503, fault.ReadOnly: 503, fault.Busy: 503, fault.Corrupt: 500, fault.Gone: 500, fault.Newer: 500,
		} {
			w.options.Store = broken{w.store, fault.Errorf(kind, "the words of %s", kind)}
			p := w.want(w.do("GET", "/v1/status", ""), status).problem(t)
			if p.Status != status || p.Type != "urn:leasehold:fault:"+kind.String() || p.Title == "" || !strings.Contains(p.Detail, "the words of "+kind.String()) {
				t.Errorf("%s: got %+v, want status %d and its words", kind, p, status)
			}
			_, err := w.client().Status(t.Context())
			if !fault.Is(err, kind) || !strings.Contains(err.Error(), "the words of "+kind.String()) {
				t.Errorf("the client's error: got %v of kind %s, want kind %s", err, fault.Of(err), kind)
			}
		}
	})

	t.Run("the cause of our own mistake is in the log and not in the answer", func(t *testing.T) {
		w := newWorld(t)
		w.options.Store = broken{w.store, errors.New("column 7 of row 9")}
		a := w.want(w.do("GET", "/v1/status", ""), http.StatusInternalServerError)
		if strings.Contains(a.body, "column 7") || !strings.Contains(w.log.String(), "column 7") {
			t.Errorf("answer %s, log %s: want the cause in the log only", a.body, w.log.String())
		}
	})

	t.Run("a panic is one failed request", func(t *testing.T) {
		w := newWorld(t)
		w.options.Store = careless{w.store}
		a := w.want(w.do("GET", "/v1/status", ""), http.StatusInternalServerError)
		if strings.Contains(a.body, "the map is nil") || !strings.Contains(w.log.String(), "the map is nil") {
			t.Errorf("answer %s, log %s: want the panic in the log only", a.body, w.log.String())
		}
	})

	t.Run("an unknown path and a wrong method are told apart", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("GET", "/v1/nothing", ""), http.StatusNotFound).problem(t)
		a := w.want(w.do("PATCH", "/v1/installations/acme", ""), http.StatusMethodNotAllowed)
		a.problem(t)
		if got, want := strings.Join(a.header.Values("Allow"), ", "), "GET, PUT, DELETE"; got != want {
			t.Errorf("Allow: got %q, want %q", got, want)
		}
	})

	t.Run("a parameter that is wrong, unknown or twice is refused, all at once", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("GET", "/v1/events?limit=0&intallation=a&type=x&type=y", ""), 422, "limit: must be a number from 1 to 500", `\"intallation\" is not a parameter here`, "type is given more than once")
		w.want(w.do("GET", "/v1/events?installation=%ff", ""), 422, "not valid UTF-8")
		w.want(w.do("GET", "/v1/events?after=1&before=2", ""), 422, "exclude each other")
		w.want(w.do("GET", "/v1/deliveries?state=lost", ""), 422, "must be one of pending")
		w.want(w.do("GET", "/v1/types/chat?x=1", ""), 422, "is not a parameter")
	})
}

func TestStatus(t *testing.T) {
	t.Run("where nothing runs, states are history and nothing is well", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		o, err := w.client().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Mode != admin.Stopped || o.Well || len(o.Trouble) > 0 || o.Installations[0].Status.State != "not_running" || o.Totals.Links["not_running"] != 1 {
			t.Errorf("got %+v, want stopped and not_running", o)
		}
	})

	t.Run("the truth is what the process says of its links, and nothing else", func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"free", "held", "off", "stuck"} {
			w.put(id)
		}
		w.want(w.do("POST", "/v1/installations/off/disable", ""), http.StatusOK)
		w.options.Mode = admin.Running
		w.options.Process = &process{
			links: map[string]admin.Status{
				"held": {State: "connected"}, "stuck": {State: "blocked", Reason: "auth", Detail: "invalid token"},
			},
			targets: []admin.Target{{Name: "app", State: "down", Reason: "refused"}, {Name: "log", State: "ok"}},
		}
		o, err := w.client().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		states := map[string]string{}
		for _, v := range o.Installations {
			states[v.ID] = v.Status.State
		}
		for id, want := range map[string]string{"free": "unclaimed", "held": "connected", "off": "disabled", "stuck": "blocked"} {
			if states[id] != want {
				t.Errorf("%s: got %s, want %s", id, states[id], want)
			}
		}
		trouble := map[string]string{}
		for _, x := range o.Trouble {
			trouble[x.What] = x.State + " " + x.NextStep
		}
		if len(trouble) != 3 || !strings.Contains(trouble["installation stuck"], "replace its credential") || !strings.HasPrefix(trouble["target app"], "down ") || trouble["installation free"] == "" {
			t.Errorf("trouble: got %v, want the free, the stuck one and the target, each with its next step", trouble)
		}
		if o.Well {
			t.Error("well: got true, want false")
		}
	})

	t.Run("a target that takes nothing is not well, though it can be reached", func(t *testing.T) {
		w := newWorld(t)
		since := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
		w.options.Mode, w.options.Process = admin.Running, &process{targets: []admin.Target{{
			Name: "app", State: "failing", NextStep: "correct the path", Reason: "14 deliveries wait, the last attempt failed: answered 404: not found", LastError: "answered 404: not found", FailingSince: since,
		}}}
		o, err := w.client().Status(t.Context())
		if err != nil || o.Well || len(o.Trouble) != 1 || o.Trouble[0].What != "target app" || o.Trouble[0].State != "failing" || o.Trouble[0].NextStep != "correct the path" || !strings.Contains(o.Trouble[0].Reason, "404") {
			t.Errorf("got well %v, trouble %+v, %v, want the failing target with its answer", o.Well, o.Trouble, err)
		}
		if len(o.Targets) != 1 || o.Targets[0].LastError != "answered 404: not found" || !o.Targets[0].FailingSince.Equal(since) {
			t.Errorf("got %+v, want its last error and since when it fails", o.Targets)
		}
	})

	t.Run("a trouble of the node's own is told, and what a store that takes nothing needs", func(t *testing.T) {
		w := newWorld(t)
		held := admin.Trouble{What: "clock", State: "held", Reason: "it shows 1970", NextStep: "set it"}
		w.options.Mode, w.options.Process = admin.Running, &process{
			troubles: []admin.Trouble{held}, unready: fmt.Errorf("the store takes nothing: %w", fault.Errorf(fault.Full, "no space left")),
		}
		want := []admin.Trouble{{What: "node", State: "not_ready", Reason: "the store takes nothing: no space left", NextStep: admin.StoreStep(fault.Errorf(fault.Full, ""))}, held}
		if o, err := w.client().Status(t.Context()); err != nil || o.Well || !slices.Equal(o.Trouble, want) || want[0].NextStep == "" {
			t.Errorf("got well %v, %+v, %v, want %+v", o.Well, o.Trouble, err, want)
		}
	})

	t.Run("dead letters are not well", func(t *testing.T) {
		w := newWorld(t)
		w.options.Mode, w.options.Process = admin.Running, &process{}
		if o, err := w.client().Status(t.Context()); err != nil || !o.Well {
			t.Fatalf("an empty box: got well %v, %v, want true", o.Well, err)
		}
		w.options.Store = dead{w.store}
		if o, err := w.client().Status(t.Context()); err != nil || o.Well {
			t.Errorf("with a dead letter: got well %v, %v, want false", o.Well, err)
		}
	})

	t.Run("ready is the node's word, health the process's", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("GET", "/readyz", ""), http.StatusServiceUnavailable, "nothing runs here")
		w.options.Holder = "process 7"
		w.want(w.do("GET", "/readyz", ""), http.StatusServiceUnavailable, "process 7 holds the store")
		p := &process{unready: errors.New("the disk is full")}
		w.options.Process = p
		w.want(w.do("GET", "/readyz", ""), http.StatusServiceUnavailable, "not ready: the disk is full")
		p.unready = nil
		w.want(w.do("GET", "/readyz", ""), http.StatusOK, "ready")
		w.want(w.do("GET", "/healthz", ""), http.StatusOK, "ok")
		if w.log.Len() > 0 {
			t.Errorf("log: got %s, want nothing: a probe asks every second", w.log.String())
		}
	})

	t.Run("nodes and version are told", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		nodes, err := w.client().Nodes(t.Context())
		if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Name != "gw" || nodes.Items[0].Leases != 1 {
			t.Errorf("nodes: got %+v, %v, want gw with one lease", nodes, err)
		}
		if v, err := w.client().Version(t.Context()); err != nil || v.Version != "9" {
			t.Errorf("version: got %v, %v, want 9", v, err)
		}
	})
}

// dead is a store with a dead letter.
type dead struct{ admin.Store }

func (d dead) Totals(ctx context.Context) (admin.Totals, error) {
	t, err := d.Store.Totals(ctx)
	t.Deliveries["dead"] = 1
	return t, err
}

func TestTypes(t *testing.T) {
	t.Run("a type is told with its schema, the keys in order and secrets as references", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("GET", "/v1/types", ""), http.StatusOK, `"name":"chat"`, `"can":["send","typing","threads","call"]`, `"limits":{"all":"30/s","chat":"20/m burst 5"}`, `"writes":{"markup":"mrkdwn","limit":4000,"unit":"characters"}`, `"hosts":["chat.example.org:443"]`, `"deaf":"50s"`)
		a := w.want(w.do("GET", "/v1/types/chat", ""), http.StatusOK, `"$schema":"https://json-schema.org/draft/2020-12/schema"`, `"required":["url"]`, `"additionalProperties":false`)
		var last int
		for _, key := range []string{`"url":{"type":"string"`, `"token":{`, `"note":{"oneOf":[{"type":"string"},`, `"every":{"type":"string"`} {
			at := strings.Index(a.body, key)
			if at < last {
				t.Errorf("%s: got index %d after %d, want the order of the fields", key, at, last)
			}
			last = at
		}
		var parsed admin.Type
		if err := json.Unmarshal([]byte(a.body), &parsed); err != nil {
			t.Fatal(err)
		}
		token := parsed.Schema.Properties[1].Schema
		if !token.Secret || !token.Connection || len(token.OneOf) != 4 || token.Description != "The bot's token." {
			t.Errorf("token: got %+v, want a secret by one of four references", token)
		}
		w.want(w.do("GET", "/v1/types/chatt", ""), http.StatusNotFound, "run leasehold types list")
	})
}
