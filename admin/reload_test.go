package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/internal/fault"
)

// reloader answers as a test decides.
type reloader struct {
	state admin.Configuration
	done  admin.Reloaded
	err   error
	empty bool // was allowed
}

func (r *reloader) Configuration() admin.Configuration { return r.state }

func (r *reloader) Reload(_ context.Context, allowEmpty bool) (admin.Reloaded, error) {
	r.empty = allowEmpty
	return r.done, r.err
}

func TestReload(t *testing.T) {
	faults := admin.Faulty{
		{File: "leasehold.toml", Line: 3, Column: 7, Key: "log.level", Message: "must be one of those", Text: "leasehold.toml:3:7: log.level: must be one of those"},
		{Message: "it has " + secretValue + " in it", Text: "it has " + secretValue + " in it"},
	}

	t.Run("the answer says what changed", func(t *testing.T) {
		w := newWorld(t)
		w.options.Reloader = &reloader{done: admin.Reloaded{Files: []string{"/etc/x.toml"}, Targets: admin.Changes{Changed: []string{"app"}}, Restart: []string{"lease.ttl"}}}
		w.want(w.do("POST", "/v1/reload", ""), http.StatusOK, `"files":["/etc/x.toml"]`, `"installations":{}`, `"targets":{"changed":["app"]}`, `"restart":["lease.ttl"]`)
		w.want(w.do("GET", "/v1/reload", ""), http.StatusMethodNotAllowed)
		w.want(w.do("POST", "/v1/reload?x=1", ""), 422, "not a parameter")
		got, err := w.client().Reload(t.Context(), false)
		if err != nil || got.Targets.None() || !got.Installations.None() {
			t.Errorf("got %+v, %v, want the changes", got, err)
		}
	})

	t.Run("files that are refused are a problem with each fault in it, and without secrets", func(t *testing.T) {
		w := newWorld(t)
		w.options.Redact.Add(secretValue)
		w.options.Reloader = &reloader{err: faults}
		a := w.want(w.do("POST", "/v1/reload", ""), 422, `"faults":[{"file":"leasehold.toml","line":3,"column":7,"key":"log.level"`)
		p := a.problem(t)
		if len(p.Faults) != 2 || p.Faults[1].Text == faults[1].Text {
			t.Errorf("got %+v, want two faults, the secret taken out", p.Faults)
		}
		_, err := w.client().Reload(t.Context(), false)
		got, ok := errors.AsType[admin.Faulty](err)
		if !ok || len(got) != 2 || got[0] != faults[0] || !fault.Is(err, fault.Invalid) {
			t.Errorf("got %#v, want the faults, and that they are invalid", err)
		}
		if faults[1].Text != "it has "+secretValue+" in it" {
			t.Error("got the reloader's own faults changed, want a copy")
		}
	})

	t.Run("that an empty file is meant is said in the request", func(t *testing.T) {
		w := newWorld(t)
		r := &reloader{}
		w.options.Reloader = r
		for path, want := range map[string]bool{"/v1/reload": false, "/v1/reload?allow_empty=false": false, "/v1/reload?allow_empty=true": true} {
			w.want(w.do("POST", path, ""), http.StatusOK)
			if r.empty != want {
				t.Errorf("%s: got %v, want %v", path, r.empty, want)
			}
		}
		w.want(w.do("POST", "/v1/reload?allow_empty=yes", ""), 422, "allow_empty: must be one of true, false")
		if _, err := w.client().Reload(t.Context(), true); err != nil || !r.empty {
			t.Errorf("the client: got %v, %v, want that it is allowed", r.empty, err)
		}
	})

	t.Run("a store that takes nothing is told as it is", func(t *testing.T) {
		w := newWorld(t)
		w.options.Reloader = &reloader{err: fault.Errorf(fault.Full, "no space is left")}
		w.want(w.do("POST", "/v1/reload", ""), http.StatusServiceUnavailable, "no space is left")
	})

	t.Run("where nothing runs there is nothing to reload", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("POST", "/v1/reload", ""), http.StatusServiceUnavailable, "start it with leasehold run")
	})

	t.Run("the status shows the files, and is not well while they are refused", func(t *testing.T) {
		w := newWorld(t)
		r := &reloader{state: admin.Configuration{Files: []string{"/etc/x.toml"}, Applied: time.Now(), Restart: []string{"lease.ttl"}}}
		w.options.Mode, w.options.Process, w.options.Reloader = admin.Running, &process{}, r
		w.want(w.do("GET", "/v1/status", ""), http.StatusOK, `"well":true`, `"config":{"files":["/etc/x.toml"],"applied":"`, `"restart":["lease.ttl"]`)
		r.state.Faults, r.state.Failed = faults, time.Now()
		w.want(w.do("GET", "/v1/status", ""), http.StatusOK, `"well":false`,
			`{"what":"config","state":"not_applied","reason":"leasehold.toml:3:7: log.level: must be one of those; and more","next_step":"correct the file`)
	})
}
