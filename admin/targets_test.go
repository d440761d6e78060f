package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/fault"
)

// lives is a running program's targets, as the handlers see them.
type lives struct {
	mu       sync.Mutex // guards what follows
	followed int
	waiting  []delivery.Leased
	settled  []string
	given    string
	after    time.Duration
	released int
}

func (l *lives) FollowTargets(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followed++
	return nil
}

func (l *lives) Test(_ context.Context, name string) (delivery.Tested, error) {
	if name != "app" {
		return delivery.Tested{}, fault.Errorf(fault.NotFound, "there is no target %s", name)
	}
	return delivery.Tested{ID: "msg_1", Result: delivery.Result{Outcome: delivery.Broken, Reason: "answered 500"}, Took: 1500 * time.Microsecond}, nil
}

func (l *lives) Pull(ctx context.Context, _ string, most int) ([]delivery.Leased, error) {
	l.mu.Lock()
	got := l.waiting[:min(most, len(l.waiting))]
	l.waiting = l.waiting[len(got):]
	l.mu.Unlock()
	if len(got) == 0 {
		<-ctx.Done()
	}
	return got, nil
}

func (l *lives) Acknowledge(_ string, leases []string) (over []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range leases {
		if lease == "late" {
			over = append(over, lease)
			continue
		}
		l.settled = append(l.settled, lease)
	}
	return over, nil
}

func (l *lives) GiveBack(name string, leases []string, reason string, after time.Duration) ([]string, error) {
	l.mu.Lock()
	l.given, l.after = reason, after
	l.mu.Unlock()
	return l.Acknowledge(name, leases)
}

func (l *lives) Stream(string, delivery.StreamOptions) (*delivery.Stream, error) {
	return nil, fault.Errorf(fault.NotFound, "there is no target here")
}

func (l *lives) Release(_ string, all []delivery.Leased) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released += len(all)
}

// withTargets has the handlers take targets of a type and an address.
func withTargets(t *testing.T) (*world, *lives) {
	t.Helper()
	w, live := newWorld(t), &lives{}
	w.options.Live = live
	w.options.DeclaredTarget = func(name string) string { return map[string]string{"filed": "leasehold.toml:7"}[name] }
	w.options.CheckTarget = func(name string, raw json.RawMessage) (json.RawMessage, string, error) {
		var keys struct {
			Type         string            `json:"type"`
			URL          string            `json:"url,omitempty"`
			Installation string            `json:"installation,omitempty"`
			Thread       string            `json:"thread,omitempty"`
			Headers      map[string]string `json:"headers,omitempty"`
		}
		err := json.Unmarshal(raw, &keys)
		if err == nil && keys.Type == "" {
			err = errors.New("type: is missing")
		}
		if err != nil {
			return nil, "", fault.Wrap(fault.Invalid, err)
		}
		canonical, err := json.Marshal(keys)
		return canonical, keys.Type, err
	}
	return w, live
}

func TestTargets(t *testing.T) {
	w, live := withTargets(t)

	t.Run("a target is made, shown with its revision, and taken up", func(t *testing.T) {
		got := w.do(http.MethodPut, "/v1/targets/app", `{"url":"http://x","type":"http"}`)
		w.want(got, http.StatusCreated, `"config":{"type":"http","url":"http://x"}`, `"source":"api"`, `"revision":1`)
		if tag := got.header.Get("ETag"); tag != `"1"` {
			t.Errorf("got the tag %s, want \"1\"", tag)
		}
		if live.followed != 1 {
			t.Errorf("got it taken up %d times, want once", live.followed)
		}
		w.want(w.do(http.MethodGet, "/v1/targets", ""), http.StatusOK, `"name":"app"`)
		w.want(w.do(http.MethodGet, "/v1/targets?type=log", ""), http.StatusOK, `"items":[]`)
		w.want(w.do(http.MethodGet, "/v1/targets/other", ""), http.StatusNotFound, "there is no target other")
	})

	t.Run("it is replaced and changed at its revision, and at no other", func(t *testing.T) {
		w.want(w.do(http.MethodPut, "/v1/targets/app", `{"type":"log"}`), http.StatusConflict, "exists at revision 1")
		w.want(w.do(http.MethodPut, "/v1/targets/app", `{"type":"log"}`, "If-Match", `"7"`), http.StatusConflict, "it has revision 1, not 7")
		w.want(w.do(http.MethodPatch, "/v1/targets/app", `{"url":"http://y"}`), http.StatusUnprocessableEntity, "If-Match is missing")
		w.want(w.do(http.MethodPatch, "/v1/targets/app", `{"url":"http://y","headers":{"A":"1","B":"2"}}`, "If-Match", `"1"`), http.StatusOK,
			`"config":{"type":"http","url":"http://y","headers":{"A":"1","B":"2"}}`, `"revision":2`)
		w.want(w.do(http.MethodPatch, "/v1/targets/app", `{"url":null,"headers":{"A":null,"C":"3"}}`, "If-Match", `"2"`), http.StatusOK,
			`"config":{"type":"http","headers":{"B":"2","C":"3"}}`)
		w.want(w.do(http.MethodPatch, "/v1/targets/app", `{"type":null}`, "If-Match", `"3"`), http.StatusUnprocessableEntity, "type: is missing")
		w.want(w.do(http.MethodPatch, "/v1/targets/other", `{}`, "If-Match", `"1"`), http.StatusNotFound)
	})

	t.Run("only who speaks over the local socket may have one run a program", func(t *testing.T) {
		const words = "define it in the config file, or over the local socket"
		w.want(w.do(http.MethodPut, "/v1/targets/program", `{"type":"command"}`), http.StatusForbidden, words)
		w.want(w.do(http.MethodPatch, "/v1/targets/app", `{"type":"command"}`, "If-Match", `"3"`), http.StatusForbidden, words)
		client := admin.NewClient(admin.InProcess(admin.New(w.options)))
		if _, err := client.PutTarget(t.Context(), "program", map[string]any{"type": "command"}, 0); err != nil {
			t.Errorf("got %v from this process, want it made", err)
		}
		w.want(w.do(http.MethodPut, "/v1/targets/program", `{"type":"log"}`, "If-Match", `"1"`), http.StatusForbidden, words)
	})

	t.Run("nor have one send what this machine keeps in files and variables", func(t *testing.T) {
		check := w.options.CheckTarget
		w.options.CheckTarget = func(_ string, raw json.RawMessage) (json.RawMessage, string, error) { return raw, "http", nil }
		for _, keys := range []string{
			`{"headers":{"X":{"file":"/etc/shadow"}}}`, `{"signing_keys":[{"env":"KEY"}]}`, `{"client_key":{"file":"/key"}}`, `{"ca_file":"/etc/shadow"}`, `{"client_cert":"/etc/shadow"}`,
		} {
			w.want(w.do(http.MethodPut, "/v1/targets/steals", keys), http.StatusForbidden, "refers to files, variables or programs")
		}
		w.want(w.do(http.MethodPut, "/v1/targets/honest", `{"headers":{"X":{"secret":"app"}},"match":{"file":"x"}}`), http.StatusCreated)
		w.want(w.do(http.MethodDelete, "/v1/targets/honest", ""), http.StatusOK)
		w.options.CheckTarget = check
	})

	t.Run("one of the file is changed there, and switched here", func(t *testing.T) {
		if _, _, _, err := w.store.ReconcileTargets(t.Context(), []admin.TargetRow{{Name: "filed", Config: []byte(`{"type":"log"}`)}}); err != nil {
			t.Fatal(err)
		}
		const words = "target filed is set in leasehold.toml:7; change it there"
		w.want(w.do(http.MethodPut, "/v1/targets/filed", `{"type":"log"}`, "If-Match", `"1"`), http.StatusConflict, words)
		w.want(w.do(http.MethodPatch, "/v1/targets/filed", `{"url":"http://x"}`, "If-Match", `"1"`), http.StatusConflict, words)
		w.want(w.do(http.MethodDelete, "/v1/targets/filed", ""), http.StatusConflict, words)
		w.want(w.do(http.MethodPost, "/v1/targets/filed/disable", ""), http.StatusOK, `"off":"asked"`, `"declared":"leasehold.toml:7"`)
		w.want(w.do(http.MethodPost, "/v1/targets/filed/enable", ""), http.StatusOK, `"revision":3`)
		w.options.Shared = true
		w.want(w.do(http.MethodPut, "/v1/targets/filed", `{"type":"http"}`, "If-Match", `"3"`), http.StatusOK, `"source":"api"`)
		w.options.Shared = false
	})

	t.Run("one that sends needs an installation that can", func(t *testing.T) {
		w.want(w.do(http.MethodPut, "/v1/targets/ops", `{"type":"message","installation":"nobody"}`), http.StatusUnprocessableEntity, "there is no installation nobody")
		w.want(w.do(http.MethodPut, "/v1/installations/bot", `{"type":"chat","config":{"url":"ws://x"}}`), http.StatusCreated)
		w.want(w.do(http.MethodPut, "/v1/targets/ops", `{"type":"message","installation":"bot"}`), http.StatusCreated)
	})

	t.Run("one that installations name is removed when that is meant", func(t *testing.T) {
		w.options.TargetNames = func() []string { return nil }
		w.want(w.do(http.MethodPut, "/v1/installations/names", `{"type":"chat","config":{"url":"ws://x"},"targets":["nobody"]}`), http.StatusUnprocessableEntity, "there are app, filed, ops, program")
		w.want(w.do(http.MethodPut, "/v1/installations/names", `{"type":"chat","config":{"url":"ws://x"},"targets":["app"]}`), http.StatusCreated)
		w.want(w.do(http.MethodDelete, "/v1/targets/app", ""), http.StatusConflict, "installations name target app: names")
		w.want(w.do(http.MethodDelete, "/v1/targets/app?force=true", "", "If-Match", `"9"`), http.StatusConflict)
		w.want(w.do(http.MethodDelete, "/v1/targets/app?force=true", ""), http.StatusOK, `"removed":"app"`, `"dead":0`)
		w.want(w.do(http.MethodDelete, "/v1/targets/app", ""), http.StatusNotFound)
	})

	t.Run("a test says what became of it", func(t *testing.T) {
		w.want(w.do(http.MethodPost, "/v1/targets/app/test", ""), http.StatusOK, `"taken":false`, `"reason":"answered 500"`, `"took_ms":1.5`)
		w.want(w.do(http.MethodPost, "/v1/targets/other/test", ""), http.StatusNotFound)
	})

	t.Run("where nothing runs, nothing is tested or pulled", func(t *testing.T) {
		w.options.Live = nil
		for _, path := range []string{"POST test", "GET pull", "GET stream", "POST ack", "POST nack"} {
			method, verb, _ := strings.Cut(path, " ")
			w.want(w.do(method, "/v1/targets/app/"+verb, `{"leases":["x"]}`), http.StatusConflict, "leasehold run")
		}
	})
}

func TestPulls(t *testing.T) {
	w, live := withTargets(t)
	leased := func(lease string) delivery.Leased {
		return delivery.Leased{Lease: lease, Until: time.Now(), Delivery: delivery.Delivery{ID: "msg_" + lease, Attempt: 2, Envelope: []byte(`{"text":"a<b ` + secretValue + `"}`)}}
	}

	t.Run("deliveries come as a webhook gets them, and as many as were asked for", func(t *testing.T) {
		live.waiting = []delivery.Leased{leased("1"), leased("2"), leased("3")}
		w.want(w.do(http.MethodGet, "/v1/targets/app/pull?max=2", ""), http.StatusOK,
			`"lease":"1"`, `"lease":"2"`, `"webhook_id":"msg_2"`, `"attempt":2`, `"event":{"text":"a<b `+secretValue+`"}`)
		if len(live.waiting) != 1 {
			t.Errorf("got %d left, want 1", len(live.waiting))
		}
		w.want(w.do(http.MethodGet, "/v1/targets/app/pull", ""), http.StatusOK, `"lease":"3"`)
		w.want(w.do(http.MethodGet, "/v1/targets/app/pull?wait=10ms", ""), http.StatusOK, `{"items":[]}`)
		w.want(w.do(http.MethodGet, "/v1/targets/app/pull?wait=2h&max=0", ""), http.StatusUnprocessableEntity, "wait: must be", "max: must be")
	})

	t.Run("what is settled, and what was over already, is told", func(t *testing.T) {
		w.want(w.do(http.MethodPost, "/v1/targets/app/ack", `{"leases":["1","late","2"]}`), http.StatusOK, `{"settled":2,"over":["late"]}`)
		w.want(w.do(http.MethodPost, "/v1/targets/app/nack", `{"leases":["3"],"reason":"out of paper","after":"1m"}`), http.StatusOK, `{"settled":1,"over":[]}`)
		if !slices.Equal(live.settled, []string{"1", "2", "3"}) || live.given != "out of paper" || live.after != time.Minute {
			t.Errorf("got %v settled, %q after %v, want 1, 2 and 3, with the reason, after a minute", live.settled, live.given, live.after)
		}
		w.want(w.do(http.MethodPost, "/v1/targets/app/ack", `{"leases":[]}`), http.StatusUnprocessableEntity, "name at least one")
		w.want(w.do(http.MethodPost, "/v1/targets/app/ack", `{"leases":["1"],"reason":"x"}`), http.StatusUnprocessableEntity, "go with nack")
	})

	t.Run("what nobody waits for any more is let go", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		live.waiting = []delivery.Leased{leased("4")}
		client := admin.NewClient(admin.InProcess(admin.New(w.options)))
		if got, err := client.Pull(ctx, "app", 1, time.Second); err == nil {
			t.Errorf("got %v, want an error: the caller has left", got)
		}
		live.mu.Lock()
		defer live.mu.Unlock()
		if len(live.waiting) == 0 && live.released != 1 {
			t.Errorf("got %d released, want 1", live.released)
		}
	})
}
