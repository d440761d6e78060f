package admin_test

import (
	"net/http"
	"testing"

	"leasehold/admin"
	"leasehold/engine"
)

func TestSharedStore(t *testing.T) {
	filed := func(t *testing.T, shared bool) *world {
		t.Helper()
		w := newWorld(t)
		w.options.Mode, w.options.Process, w.options.Shared = admin.Stopped, nil, shared
		w.put("acme")
		w.hold()
		id := w.term.Installation
		state := engine.LinkStatus{Installation: id, State: engine.Connected}
		if err := w.store.SaveStatus(t.Context(), []engine.TermStatus{{Term: w.term, Status: state}}); err != nil {
			t.Fatal(err)
		}
		row := admin.Installation{ID: "filed", Type: "chat", Enabled: true, Source: admin.SourceFile, Config: []byte(`{"url":"ws://x"}`)}
		if _, err := w.store.PutInstallation(t.Context(), row, 0); err != nil {
			t.Fatal(err)
		}
		return w
	}

	t.Run("what another node holds is as that one says, though none runs here", func(t *testing.T) {
		w := filed(t, true)
		w.want(w.do(http.MethodGet, "/v1/installations/"+w.term.Installation, ""), http.StatusOK, `"state":"connected"`)
		w.want(w.do(http.MethodGet, "/v1/installations/filed", ""), http.StatusOK, `"state":"not_running"`)
	})

	t.Run("in a store of one process it is history", func(t *testing.T) {
		w := filed(t, false)
		w.want(w.do(http.MethodGet, "/v1/installations/"+w.term.Installation, ""), http.StatusOK, `"state":"not_running"`)
	})

	t.Run("whoever wants to may change what a file named", func(t *testing.T) {
		w := filed(t, true)
		w.want(w.do(http.MethodPost, "/v1/installations/filed/disable", ""), http.StatusOK, `"enabled":false`)
		w = filed(t, false)
		w.want(w.do(http.MethodPost, "/v1/installations/filed/disable", ""), http.StatusConflict)
	})
}
