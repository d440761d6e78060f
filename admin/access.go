package admin

import (
	"context"
	"net/http"

	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
)

// rule says what it takes to use a route with a token. Whoever speaks over the local
// socket is the owner, and needs none.
type rule struct {
	scope string // open: nobody is asked; ownerOnly: no token at all
	// of names the installation that a request is about, for a token that is bound to
	// some. nil: it is about the whole box, and such a token is refused.
	of func(a *API, r *http.Request) (string, error)
}

const (
	open      = "open"
	ownerOnly = "owner" // for the owner over the local socket: it reads or writes what his files say
)

// access has a rule for every route. A route without one is refused to tokens, and a
// test names it.
var access = map[string]rule{
	"GET /healthz": {scope: open}, "GET /readyz": {scope: open}, "/": {scope: open},

	"GET /metrics": {scope: apitoken.Read}, "GET /v1/status": {scope: apitoken.Read}, "GET /v1/version": {scope: apitoken.Read, of: anyone},
	"GET /v1/types": {scope: apitoken.Read, of: anyone}, "GET /v1/types/{name}": {scope: apitoken.Read, of: anyone},
	"GET /v1/tasks": {scope: apitoken.Read}, "GET /v1/nodes": {scope: apitoken.Read}, "GET /v1/audit": {scope: apitoken.Admin},

	"GET /v1/installations":               {scope: apitoken.Read, of: anyone}, // it lists those that the token sees
	"GET /v1/installations/{id}":          {scope: apitoken.Read, of: inPath},
	"PUT /v1/installations/{id}":          {scope: apitoken.Installations, of: inPath},
	"POST /v1/installations/{id}/enable":  {scope: apitoken.Installations, of: inPath},
	"POST /v1/installations/{id}/disable": {scope: apitoken.Installations, of: inPath},
	"DELETE /v1/installations/{id}":       {scope: apitoken.Installations, of: inPath},
	"POST /v1/installations/{id}/call":    {scope: apitoken.Call, of: inPath},

	"GET /v1/events": {scope: apitoken.Read, of: inQuery}, "GET /v1/events/tail": {scope: apitoken.Read, of: inQuery},
	"GET /v1/events/{id}": {scope: apitoken.Read, of: ofEvent}, "GET /v1/trace/{id}": {scope: apitoken.Read, of: ofTrace},
	"POST /v1/events/{id}/reply": {scope: apitoken.EventsReply, of: ofEvent},
	"POST /v1/events/replay":     {scope: apitoken.Deliveries},

	"GET /v1/deliveries":              {scope: apitoken.Read, of: inQuery},
	"GET /v1/deliveries/{id}":         {scope: apitoken.Read, of: ofDelivery},
	"POST /v1/deliveries/replay":      {scope: apitoken.Deliveries},
	"POST /v1/deliveries/drop":        {scope: apitoken.Deliveries},
	"POST /v1/deliveries/{id}/replay": {scope: apitoken.Deliveries, of: ofDelivery},
	"POST /v1/deliveries/{id}/drop":   {scope: apitoken.Deliveries, of: ofDelivery},

	"POST /v1/installations/{id}/messages": {scope: apitoken.MessagesSend, of: inPath},
	"GET /v1/messages":                     {scope: apitoken.Read, of: inQuery},
	"GET /v1/messages/{id}":                {scope: apitoken.Read, of: ofMessage},

	"GET /v1/targets": {scope: apitoken.Read}, "GET /v1/targets/{name}": {scope: apitoken.Read},
	"PUT /v1/targets/{name}": {scope: apitoken.Targets}, "PATCH /v1/targets/{name}": {scope: apitoken.Targets},
	"DELETE /v1/targets/{name}": {scope: apitoken.Targets}, "POST /v1/targets/{name}/enable": {scope: apitoken.Targets},
	"POST /v1/targets/{name}/disable": {scope: apitoken.Targets}, "POST /v1/targets/{name}/test": {scope: apitoken.Targets},
	// Whoever pulls takes deliveries from those who pull beside him.
	"GET /v1/targets/{name}/pull": {scope: apitoken.Deliveries}, "GET /v1/targets/{name}/stream": {scope: apitoken.Deliveries},
	"POST /v1/targets/{name}/ack": {scope: apitoken.Deliveries}, "POST /v1/targets/{name}/nack": {scope: apitoken.Deliveries},

	"GET /v1/secrets": {scope: apitoken.Read}, "PUT /v1/secrets/{name}": {scope: apitoken.Secrets}, "DELETE /v1/secrets/{name}": {scope: apitoken.Secrets},
	"GET /v1/keys": {scope: apitoken.Read}, "POST /v1/keys": {scope: apitoken.Secrets},
	"POST /v1/keys/{id}/retire": {scope: apitoken.Secrets}, "DELETE /v1/keys/{id}": {scope: apitoken.Secrets},
	"POST /v1/keys/rotate-master": {scope: apitoken.Admin},

	"GET /v1/tokens": {scope: apitoken.Admin}, "POST /v1/tokens": {scope: apitoken.Admin}, "DELETE /v1/tokens/{id}": {scope: apitoken.Admin},

	"POST /v1/tasks/{name}/run":   {scope: apitoken.Tasks},
	"POST /v1/nodes/{name}/drain": {scope: apitoken.Admin}, "POST /v1/nodes/{name}/resume": {scope: apitoken.Admin},
	"POST /v1/backups": {scope: ownerOnly}, "POST /v1/reload": {scope: ownerOnly},
}

// anyone: what it tells is no installation's, or is sorted by who asks.
func anyone(*API, *http.Request) (string, error) { return "", nil }

func inPath(_ *API, r *http.Request) (string, error) { return r.PathValue("id"), nil }

// inQuery wants the list of one installation.
func inQuery(_ *API, r *http.Request) (string, error) {
	if id := r.URL.Query().Get("installation"); id != "" {
		return id, nil
	}
	return "", fault.Errorf(fault.Denied, "this token is for some installations only: name one, ?installation=ID")
}

func ofEvent(a *API, r *http.Request) (string, error) {
	e, err := a.o.Store.Event(r.Context(), r.PathValue("id"))
	return e.Installation, err
}

func ofDelivery(a *API, r *http.Request) (string, error) {
	d, err := a.o.Store.Delivery(r.Context(), r.PathValue("id"))
	return d.Installation, err
}

// ofTrace takes the id of an event or of a delivery, as the handler does.
func ofTrace(a *API, r *http.Request) (string, error) {
	id, err := ofEvent(a, r)
	if fault.Is(err, fault.NotFound) {
		return ofDelivery(a, r)
	}
	return id, err
}

func ofMessage(a *API, r *http.Request) (string, error) {
	m, err := a.o.Store.Message(r.Context(), r.PathValue("id"))
	return m.Installation, err
}

type callerKey struct{} // the apitoken.Token of a request over TCP; none: it is the owner's

// callerOf is the token of a request; false: it has none, and is the owner's.
func callerOf(ctx context.Context) (apitoken.Token, bool) {
	t, ok := ctx.Value(callerKey{}).(apitoken.Token)
	return t, ok
}

// sees reports whether the caller may know of an installation.
func sees(r *http.Request, installation string) bool {
	t, ok := callerOf(r.Context())
	return !ok || t.Sees(installation)
}

// allow refuses what the caller's token is not for. What it may not see is not there.
func (a *API) allow(pattern string, r *http.Request) error {
	t, ok := callerOf(r.Context())
	need, known := access[pattern]
	switch {
	case !ok || need.scope == open:
		return nil
	case !known, need.scope == ownerOnly:
		return fault.Errorf(fault.Denied, "this is done over the local socket only, by the user that leasehold runs as")
	case !t.May(need.scope):
		return fault.Errorf(fault.Denied, "token %s has not the scope %s; make one that has: leasehold tokens create --scope %s", t.Name, need.scope, need.scope)
	case t.Everywhere():
		return nil
	case need.of == nil:
		return fault.Errorf(fault.Denied, "token %s is for some installations only, and this concerns all of them", t.Name)
	}
	id, err := need.of(a, r)
	switch {
	case err != nil:
		return err
	case id != "" && !t.Sees(id):
		return fault.Errorf(fault.NotFound, "there is no such thing that token %s may see", t.Name)
	}
	return nil
}

// notedKey finds what a handler adds to the note of its request.
type notedKey struct{}

// noted adds words to the note of a request: what it is about, where its path does not
// say that.
func noted(r *http.Request, words string) {
	if more, ok := r.Context().Value(notedKey{}).(*string); ok {
		*more = " " + words
	}
}

// watched notes what was written, and by whom. A message that the owner posts over the
// local socket is not noted: it is a row of its own, which says more, and a busy bot's
// would push out of the audit what a person looks for there. One that was posted with
// a token is, because its row does not name the token.
func (a *API) watched(pattern string, h http.Handler) http.Handler {
	need := access[pattern]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, token := callerOf(r.Context())
		if r.Method == http.MethodGet || pattern == "/" || !token && (need.scope == apitoken.MessagesSend || need.scope == apitoken.EventsReply) {
			h.ServeHTTP(w, r)
			return
		}
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		var more string
		h.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), notedKey{}, &more)))
		note := WriteNote{Caller: "local", Method: r.Method, Path: a.o.Redact.String(r.URL.Path + more), Status: rec.status}
		if token {
			note.Caller = t.Name
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), noteWithin)
		defer cancel()
		if err := a.o.Store.NoteWrite(ctx, note); err != nil && !fault.Is(err, fault.Busy) { // nothing was written where a reader answers
			a.o.Log.WarnContext(ctx, "write not noted in the audit", "caller", note.Caller, "method", note.Method, "path", note.Path, "error", err)
		}
	})
}

// statusRecorder keeps the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
