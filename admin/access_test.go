package admin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
)

// needs is the scope that each route takes; what follows it says what becomes of a token
// that is bound to some installations: id (the route names one), list (the query must),
// all (it may not). owner: no token may.
var needs = map[string]string{
	"GET /healthz": "open", "GET /readyz": "open", "/": "open",
	"GET /metrics": "read all", "GET /v1/status": "read all", "GET /v1/version": "read free", "GET /v1/types": "read free", "GET /v1/types/{name}": "read free",
	"GET /v1/tasks": "read all", "GET /v1/nodes": "read all", "GET /v1/audit": "admin all",
	"GET /v1/installations": "read free", "GET /v1/installations/{id}": "read id", "PUT /v1/installations/{id}": "installations:write id",
	"POST /v1/installations/{id}/enable": "installations:write id", "POST /v1/installations/{id}/disable": "installations:write id",
	"DELETE /v1/installations/{id}": "installations:write id",
	"GET /v1/events":                "read list", "GET /v1/events/tail": "read list", "GET /v1/events/{id}": "read event", "GET /v1/trace/{id}": "read event",
	"POST /v1/events/{id}/reply": "events:reply event", "POST /v1/events/replay": "deliveries:write all",
	"GET /v1/deliveries": "read list", "GET /v1/deliveries/{id}": "read delivery",
	"POST /v1/deliveries/replay": "deliveries:write all", "POST /v1/deliveries/drop": "deliveries:write all",
	"POST /v1/deliveries/{id}/replay": "deliveries:write delivery", "POST /v1/deliveries/{id}/drop": "deliveries:write delivery",
	"POST /v1/installations/{id}/messages": "messages:send id", "POST /v1/installations/{id}/call": "installations:call id",
	"GET /v1/messages": "read list", "GET /v1/messages/{id}": "read message",
	"GET /v1/targets": "read all", "GET /v1/targets/{name}": "read all", "PUT /v1/targets/{name}": "targets:write all", "PATCH /v1/targets/{name}": "targets:write all",
	"DELETE /v1/targets/{name}": "targets:write all", "POST /v1/targets/{name}/enable": "targets:write all", "POST /v1/targets/{name}/disable": "targets:write all",
	"POST /v1/targets/{name}/test": "targets:write all", "GET /v1/targets/{name}/pull": "deliveries:write all", "GET /v1/targets/{name}/stream": "deliveries:write all",
	"POST /v1/targets/{name}/ack": "deliveries:write all", "POST /v1/targets/{name}/nack": "deliveries:write all",
	"GET /v1/secrets": "read all", "PUT /v1/secrets/{name}": "secrets:write all", "DELETE /v1/secrets/{name}": "secrets:write all",
	"GET /v1/keys": "read all", "POST /v1/keys": "secrets:write all", "POST /v1/keys/{id}/retire": "secrets:write all", "DELETE /v1/keys/{id}": "secrets:write all",
	"POST /v1/keys/rotate-master": "admin all",
	"GET /v1/tokens":              "admin all", "POST /v1/tokens": "admin all", "DELETE /v1/tokens/{id}": "admin all",
	"POST /v1/nodes/{name}/drain": "admin all", "POST /v1/nodes/{name}/resume": "admin all",
	"POST /v1/tasks/{name}/run": "tasks:run all", "POST /v1/backups": "owner", "POST /v1/reload": "owner",
}

// asked is a request for a route, with an id and a query.
func asked(t *testing.T, pattern, id, query string) *http.Request {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = "GET", pattern
	}
	r := httptest.NewRequestWithContext(t.Context(), method, strings.NewReplacer("{id}", id, "{name}", id).Replace(path)+query, nil)
	r.SetPathValue("id", id)
	r.SetPathValue("name", id)
	return r
}

func TestAccess(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"acme", "other"} {
		w.put(id)
	}
	w.hold()
	w.accept(1, "app")
	events, err := w.store.Events(t.Context(), admin.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := w.store.Deliveries(t.Context(), admin.DeliveryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	api := admin.New(w.options)
	t.Run("every route has its rule, and each scope gets what it says and no more", func(t *testing.T) {
		for _, pattern := range api.Patterns() {
			need, known := needs[pattern]
			if !known {
				t.Errorf("%s: got no line in this table, want one; and a rule in access", pattern)
				continue
			}
			scope, _, _ := strings.Cut(need, " ")
			for _, has := range append([]string{""}, apitoken.Scopes...) {
				err := api.Allowed(pattern, apitoken.Token{Name: "probe", Scopes: []string{has}}, asked(t, pattern, "acme", ""))
				want := scope == "open" || scope != "owner" && (has == scope || has == apitoken.Admin)
				if got := err == nil; got != want || err != nil && !fault.Is(err, fault.Denied) {
					t.Errorf("%s with %q: got %v, want it allowed: %v", pattern, has, err, want)
				}
			}
		}
		if len(api.Patterns()) != len(needs) {
			t.Errorf("got %d routes, want the %d of this table", len(api.Patterns()), len(needs))
		}
	})

	t.Run("a token that is bound to installations sees those and no other", func(t *testing.T) {
		ids := map[string]string{"id": "acme", "event": events[0].ID, "delivery": deliveries[0].ID, "list": ""}
		allowed := func(pattern, installations, id, query string) error {
			scope, _, _ := strings.Cut(needs[pattern], " ")
			return api.Allowed(pattern, apitoken.Token{Name: "probe", Scopes: []string{scope}, Installations: []string{installations}}, asked(t, pattern, id, query))
		}
		for pattern, need := range needs {
			_, how, _ := strings.Cut(need, " ")
			switch how {
			case "free":
				if err := allowed(pattern, "acme*", "acme", ""); err != nil {
					t.Errorf("%s: got %v, want it allowed", pattern, err)
				}
			case "all":
				if err := allowed(pattern, "*", "acme", ""); !fault.Is(err, fault.Denied) {
					t.Errorf("%s: got %v, want it denied", pattern, err)
				}
			case "id", "event", "delivery", "list":
				query := ""
				if how == "list" {
					query = "?installation=acme"
					if err := allowed(pattern, "acme*", "", ""); !fault.Is(err, fault.Denied) {
						t.Errorf("%s of all: got %v, want it denied", pattern, err)
					}
				}
				if err := allowed(pattern, "acme*", ids[how], query); err != nil {
					t.Errorf("%s of its own: got %v, want it allowed", pattern, err)
				}
				if err := allowed(pattern, "oth*", ids[how], query); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s of another: got %v, want nothing there", pattern, err)
				}
			}
		}
	})
}

// gated asks over TCP's way in. A header of the name "body" is the body.
func (w *world) gated(token, method, path string, header ...string) answer {
	w.t.Helper()
	var body io.Reader
	if i := slices.Index(header, "body"); i >= 0 {
		body = strings.NewReader(header[i+1])
		header = slices.Delete(slices.Clone(header), i, i+2)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, body)
	r.Host = "localhost:8470"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	rec := httptest.NewRecorder()
	admin.NewGate(admin.New(w.options), "gw.example.org").ServeHTTP(rec, r)
	return answer{rec.Code, rec.Header(), rec.Body.String()}
}

func TestGate(t *testing.T) {
	w := newWorld(t)
	w.put("acme")
	w.put("other")
	c := w.client()
	token := func(name string, o admin.TokenOrder) string {
		t.Helper()
		o.Name = name
		made, err := c.CreateToken(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return made.Text
	}
	reader := token("reader", admin.TokenOrder{Scopes: []string{"read"}})
	bound := token("bound", admin.TokenOrder{Scopes: []string{"read", "installations:write"}, Installations: []string{"acme*"}})

	t.Run("without a token that counts there is nothing but the health", func(t *testing.T) {
		w.want(w.gated("", "GET", "/healthz"), http.StatusOK)
		began := time.Now()
		for _, wrong := range []string{"", "x", reader + "x", reader[:len(reader)-1], strings.Replace(reader, "lht_", "lht_0", 1)} {
			a := w.want(w.gated(wrong, "GET", "/v1/version"), http.StatusUnauthorized, "leasehold tokens create")
			if a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("got no WWW-Authenticate, want Bearer")
			}
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("five failures: got answers within %v, want them slowed", took)
		}
		w.want(w.gated(reader, "GET", "/v1/version"), http.StatusOK)
	})

	t.Run("a token does what its scope says, sees its installations, and leaves a row", func(t *testing.T) {
		w.want(w.gated(reader, "POST", "/v1/installations/acme/disable"), http.StatusForbidden, "token reader has not the scope installations:write")
		w.want(w.gated(bound, "POST", "/v1/installations/acme/disable"), http.StatusOK)
		w.want(w.gated(bound, "POST", "/v1/installations/other/disable"), http.StatusNotFound)
		if a := w.want(w.gated(bound, "GET", "/v1/installations"), http.StatusOK, `"acme"`); strings.Contains(a.body, "other") {
			t.Errorf("got %s, want no other installation in it", a.body)
		}
		page, err := c.Audit(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, n := range page.Items {
			rows = append(rows, n.Caller+" "+n.Method+" "+n.Path+" "+http.StatusText(n.Status))
		}
		for _, row := range []string{
			"reader POST /v1/installations/acme/disable Forbidden", "bound POST /v1/installations/acme/disable OK",
			"bound POST /v1/installations/other/disable Not Found", "local POST /v1/tokens Created", "local PUT /v1/installations/acme Created",
		} {
			if !slices.Contains(rows, row) {
				t.Errorf("got the audit %q, want %q in it", rows, row)
			}
		}
	})

	t.Run("a token has nobody's secret sent to where it likes", func(t *testing.T) {
		files := `{"type":"chat","config":{"url":"ws://thief","token":{"file":"/etc/shadow"}}}`
		twice := `{"type":"chat","config":{"url":"ws://thief","token":{"file":"/etc/shadow"},"token":{"env":"THERE"}},"enabled":false}`
		stored := `{"type":"chat","config":{"url":"ws://thief","token":{"secret":"other"}}}`
		w.want(w.gated(bound, "PUT", "/v1/installations/acme.f", "body", files), http.StatusForbidden, "over the local socket")
		w.want(w.gated(bound, "PUT", "/v1/installations/acme.s", "body", stored), http.StatusForbidden, "needs the scope secrets:write, too")
		w.want(w.gated(bound, "PUT", "/v1/installations/acme.t", "body", twice), http.StatusForbidden, "over the local socket")
		keeper := token("keeper", admin.TokenOrder{Scopes: []string{"secrets:write", "installations:write"}})
		w.want(w.gated(keeper, "PUT", "/v1/installations/acme.s", "body", stored), http.StatusCreated)
		w.want(w.gated(keeper, "PUT", "/v1/installations/acme.f", "body", files), http.StatusForbidden)
		if err := c.RevokeToken(t.Context(), "keeper"); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("another name and another site's page are refused, before any token is looked at", func(t *testing.T) {
		w.want(w.gated(reader, "GET", "/v1/version", "Host", "evil.example.org"), http.StatusMisdirectedRequest, "admin.allowed_hosts")
		w.want(w.gated(reader, "GET", "/v1/version", "Host", "GW.example.org:8470"), http.StatusOK)
		w.want(w.gated(reader, "GET", "/v1/version", "Host", "[::1]:8470"), http.StatusOK)
		for site, status := range map[string]int{"cross-site": http.StatusForbidden, "same-site": http.StatusForbidden, "same-origin": http.StatusOK, "none": http.StatusOK} {
			w.want(w.gated(bound, "POST", "/v1/installations/acme/enable", "Sec-Fetch-Site", site), status)
		}
	})

	t.Run("a token that is revoked or expired counts no more, and none is shown or stored", func(t *testing.T) {
		page, err := c.Tokens(t.Context())
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("got %d tokens, %v, want 2", len(page.Items), err)
		}
		body := w.do("GET", "/v1/tokens", "").body
		if _, secret, _ := strings.Cut(reader[4:], "_"); strings.Contains(body, secret) || strings.Contains(body, "hash") {
			t.Errorf("got %s, want no token in it", body)
		}
		brief := apitoken.Token{Name: "brief", Scopes: []string{"read"}, ExpiresAt: time.Now().Add(-time.Second)}
		text := apitoken.New(&brief)
		if err := w.store.PutToken(t.Context(), brief); err != nil {
			t.Fatal(err)
		}
		w.want(w.gated(text, "GET", "/v1/version"), http.StatusUnauthorized)
		if err := c.RevokeToken(t.Context(), "reader"); err != nil {
			t.Fatal(err)
		}
		w.want(w.gated(reader, "GET", "/v1/version"), http.StatusUnauthorized)
		if err := c.RevokeToken(t.Context(), "reader"); !fault.Is(err, fault.NotFound) {
			t.Errorf("got %v, want it gone", err)
		}
		_, err = c.CreateToken(t.Context(), admin.TokenOrder{Name: "bound", Scopes: []string{"read"}})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want its name taken", err)
		}
	})

	t.Run("a token is sent to another machine over TLS only", func(t *testing.T) {
		for server, good := range map[string]bool{
			"https://gw.example.org": true, "http://127.0.0.1:8470": true, "http://localhost:1/": true, "http://[::1]:1": true,
			"http://gw.example.org": false, "gw.example.org": false, "ftp://x": false, "https://u:p@x": false, "https://x/y": false,
		} {
			if _, err := admin.Remote(server, "token"); (err == nil) != good {
				t.Errorf("%s: got %v, want it taken: %v", server, err, good)
			}
		}
	})
}
