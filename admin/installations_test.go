package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"leasehold/admin"
	"leasehold/internal/fault"
)

func TestInstallations(t *testing.T) {
	t.Run("one is created, shown, replaced by revision, and removed", func(t *testing.T) {
		w := newWorld(t)
		a := w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://x","token":{"env":"THERE"}},"targets":["app"]}`), http.StatusCreated,
			`"id":"acme"`, `"source":"api"`, `"enabled":true`, `"token":{"env":"THERE"}`)
		if got := a.header.Get("ETag"); got != `"1"` {
			t.Errorf("ETag: got %s, want \"1\"", got)
		}
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://x"}}`), http.StatusConflict, `If-Match: \"1\"`)
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://y"},"enabled":false}`, "If-Match", `"1"`), http.StatusOK, `"enabled":false`, `"revision":2`)
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://z"}}`, "If-Match", `"1"`), http.StatusConflict, "revision 2")
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat"}`, "If-Match", `W/"x"`), 422, "If-Match")
		w.want(w.do("PUT", "/v1/installations/nobody", `{"type":"chat","config":{"url":"ws://z"}}`, "If-Match", `"1"`), http.StatusNotFound)
		w.want(w.do("POST", "/v1/installations/acme/enable", ""), http.StatusOK, `"enabled":true`)
		w.want(w.do("POST", "/v1/installations/nobody/enable", ""), http.StatusNotFound)
		w.want(w.do("DELETE", "/v1/installations/acme", ""), http.StatusNoContent)
		w.want(w.do("GET", "/v1/installations/acme", ""), http.StatusNotFound, "there is no installation acme")
		w.want(w.do("DELETE", "/v1/installations/acme", ""), http.StatusNotFound)
	})

	t.Run("a body that is not exactly one is refused, and nothing is stored", func(t *testing.T) {
		w := newWorld(t)
		for body, words := range map[string]string{
			"":                                 "the body is empty",
			"{":                                "does not fit",
			`{"type":"chat","tpye":1}`:         "tpye",
			`{"type":7}`:                       "does not fit",
			`{"type":"chat"} {}`:               "more than one",
			"{\"type\":\"ch\xffat\"}":          "not valid UTF-8",
			`{"type":"slakc"}`:                 "run leasehold types list",
			`{"type":"chat"}`:                  "url is missing",
			`{"type":"chat","config":{"u":1}}`: "see leasehold types show chat",
			`{"type":"chat","config":{"url":"ws://x","token":"literal-secret-word"}}`: "a literal secret is refused",
			`{"type":"chat","config":{"url":"ws://u:literal-secret-word@x"}}`:         "take the password out of the URL",
			`{"type":"chat","config":{"url":"http://x"}}`:                             "url: must begin with ws",
			`{"type":"chat","config":[1]}`:                                            "not a table",
		} {
			a := w.want(w.do("PUT", "/v1/installations/acme", body), 422, words)
			if strings.Contains(a.body, "literal-secret-word") {
				t.Errorf("answer to %s: got %s, want it without the secret", body, a.body)
			}
		}
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"`+strings.Repeat("x", 1<<20)+`"}}`), http.StatusRequestEntityTooLarge, "more than the 1 MiB (1048576 bytes) that it may have")
		for _, id := range []string{"-x", "a%20b", strings.Repeat("x", 129)} {
			w.want(w.do("PUT", "/v1/installations/"+id, `{"type":"chat","config":{"url":"ws://x"}}`), 422, "is no id")
		}
		w.want(w.do("GET", "/v1/installations", ""), http.StatusOK, `"items":[]`)
	})

	t.Run("its targets are configured ones, or none, or left to the default", func(t *testing.T) {
		w := newWorld(t)
		put := func(id, targets string) answer {
			return w.do("PUT", "/v1/installations/"+id, `{"type":"chat","config":{"url":"ws://x/`+id+`"}`+targets+`}`)
		}
		w.want(put("unchecked", `,"targets":["nobody"]`), http.StatusCreated)
		w.options.TargetNames = func() []string { return []string{"app", "log"} }
		w.want(put("mistyped", `,"targets":["app","lgo"]`), 422, `target \"lgo\" is not configured; there are app, log`)
		w.want(put("named", `,"targets":["log"]`), http.StatusCreated, `"targets":["log"]`)
		w.want(put("nowhere", `,"targets":[]`), http.StatusCreated, `"targets":[]`)
		if a := w.want(put("default", ""), http.StatusCreated); strings.Contains(a.body, "targets") {
			t.Errorf("got %s, want no targets in it", a.body)
		}
		w.options.TargetNames = func() []string { return nil }
		w.want(put("early", `,"targets":["app"]`), 422, "or write a [[target]] into the config file")
	})

	t.Run("a secret that is not there is taken with a warning", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://x","token":{"env":"LATER"}}}`), http.StatusCreated, `"warning":"config of installation acme: token: env LATER is not set"`)
		w.want(w.do("GET", "/v1/installations/acme", ""), http.StatusOK)
	})

	t.Run("what the file sets is changed in the file", func(t *testing.T) {
		w := newWorld(t)
		row := admin.Installation{ID: "filed", Type: "chat", Config: json.RawMessage(`{"url":"ws://x"}`), Enabled: true, Source: admin.SourceFile}
		if err := admin.Seal(w.options.Types, nil, &row); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w.store.Reconcile(t.Context(), []admin.Installation{row}); err != nil {
			t.Fatal(err)
		}
		for method, path := range map[string]string{"PUT": "", "DELETE": "", "POST": "/disable"} {
			w.want(w.do(method, "/v1/installations/filed"+path, `{"type":"chat","config":{"url":"ws://x"}}`), http.StatusConflict, "installation filed is set in leasehold.toml:12; change it there")
		}
		w.want(w.do("PUT", "/v1/installations/filed", `{"type":"chat","config":{"url":"ws://x"}}`, "If-Match", `"1"`), http.StatusConflict, "leasehold.toml:12")
		w.want(w.do("GET", "/v1/installations/filed", ""), http.StatusOK, `"declared":"leasehold.toml:12"`, `"enabled":true`)
	})

	t.Run("a list is filtered by state, type and every label, and paged by id", func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"c", "a", "b"} {
			w.put(id)
		}
		w.want(w.do("POST", "/v1/installations/b/disable", ""), http.StatusOK)
		list := func(q url.Values) (ids string, next string) {
			page, err := w.client().Installations(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range page.Items {
				ids += v.ID
			}
			return ids, page.Next
		}
		for query, want := range map[string]string{
			"": "abc", "state=disabled": "b", "type=chat": "abc", "type=other": "", "label=tenant=a": "a", "label=tenant=a&label=tenant=b": "", "label=x=y": "",
		} {
			q, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := list(q); got != want {
				t.Errorf("?%s: got %q, want %q", query, got, want)
			}
		}
		ids, next := list(url.Values{"limit": {"2"}})
		if ids != "ab" || next != "b" {
			t.Fatalf("first page: got %q, next %q, want ab, b", ids, next)
		}
		if ids, next = list(url.Values{"limit": {"2"}, "after": {next}}); ids != "c" || next != "" {
			t.Errorf("second page: got %q, next %q, want c and no more", ids, next)
		}
		w.want(w.do("GET", "/v1/installations?label=tenant", ""), 422, "label: must be name=value")
	})

	t.Run("a running engine is told to look", func(t *testing.T) {
		w := newWorld(t)
		p := &process{}
		w.options.Mode, w.options.Process = admin.Running, p
		w.put("acme")
		w.want(w.do("POST", "/v1/installations/acme/disable", ""), http.StatusOK)
		w.want(w.do("DELETE", "/v1/installations/acme", ""), http.StatusNoContent)
		if p.triggered != 3 {
			t.Errorf("triggered: got %d, want 3", p.triggered)
		}
	})
}

func TestSeal(t *testing.T) {
	w := newWorld(t)
	seal := func(config string) (string, error) {
		i := admin.Installation{ID: "a", Type: "chat", Config: json.RawMessage(config)}
		err := admin.Seal(w.options.Types, []byte("key"), &i)
		return i.Fingerprint, err
	}

	t.Run("a config that cannot be used has a fingerprint that a correction changes", func(t *testing.T) {
		first, err := seal(`{"url":"ws://x","token":{"env":"LATER"}}`)
		if err == nil || first == "" {
			t.Fatalf("got %q, %v, want a fingerprint and an error", first, err)
		}
		again, _ := seal(`{"url":"ws://x","token":{"env":"LATER"}}`)
		corrected, err := seal(`{"url":"ws://x","token":{"env":"THERE"}}`)
		if again != first || corrected == first || err != nil {
			t.Errorf("got %s, again %s, corrected %s (%v); want the same, then another", first, again, corrected, err)
		}
	})

	t.Run("an unknown type is an error that names it", func(t *testing.T) {
		i := admin.Installation{ID: "a", Type: "slakc"}
		if err := admin.Seal(w.options.Types, nil, &i); err == nil || !strings.Contains(err.Error(), "slakc") || fault.Is(err, fault.NotFound) {
			t.Errorf("got %v, want an error that names slakc", err)
		}
	})
}
