package admin_test

import (
	"context"
	"net/http"
	"testing"

	"leasehold/admin"
	"leasehold/channel"
)

func TestATypeThatOnlyTheFileMayDefine(t *testing.T) {
	w := newWorld(t)
	types, err := channel.NewTypes(nil, chatType, channel.Define(channel.Definition[struct{}]{
		Name: "program", FileOnly: true,
		New: func(context.Context, struct{}) (channel.Channel, error) {
			t.Error("got it built, want it refused before")
			return nil, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.options.Types = types
	const words = "define it in the config file"

	t.Run("is not taken over the API", func(t *testing.T) {
		w.want(w.do(http.MethodPut, "/v1/installations/a", `{"type":"program"}`), http.StatusForbidden, words)
	})

	t.Run("does not replace another one over the API", func(t *testing.T) {
		w.want(w.do(http.MethodPut, "/v1/installations/b", `{"type":"chat","config":{"url":"ws://x"}}`), http.StatusCreated)
		w.want(w.do(http.MethodPut, "/v1/installations/b", `{"type":"program"}`, "If-Match", `"1"`), http.StatusForbidden, words)
	})

	t.Run("is not taken over the API from whoever may have the file's, either", func(t *testing.T) {
		row := admin.Installation{ID: "filed", Type: "program", Enabled: true, Source: admin.SourceFile, Config: []byte(`{}`)}
		if _, err := w.store.PutInstallation(t.Context(), row, 0); err != nil {
			t.Fatal(err)
		}
		w.want(w.do(http.MethodPut, "/v1/installations/filed", `{"type":"program"}`, "If-Match", `"1"`), http.StatusForbidden, words)
		w.want(w.do(http.MethodGet, "/v1/types/program", ""), http.StatusOK, `"file_only":true`)
	})
}
