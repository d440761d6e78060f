package admin

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

const (
	// failureDelay is what a wrong token costs who sends it: three a second of one
	// connection. The right one is never kept waiting.
	failureDelay = 300 * time.Millisecond
	// failuresAtOnce bounds those that wait; more are answered at once, with 429.
	failuresAtOnce = 32
	// touchEvery is how exactly a token's last use is known: a commit an hour.
	touchEvery = time.Hour
	// noteWithin bounds a note about a request that is over.
	noteWithin = 3 * time.Second
)

// Gate is the way in over TCP: handlers for whoever has a token.
type Gate struct {
	api   *API
	hosts []string      // under which we may be called, without port
	slow  chan struct{} // holds one for each failure that waits
}

// NewGate makes the way in. hosts are names and addresses, beside those of this
// machine's loopback, that a request may be for: a page elsewhere that gets a name of
// its own to lead here is refused.
func NewGate(api *API, hosts ...string) *Gate {
	g := &Gate{api: api, hosts: []string{"localhost", "127.0.0.1", "::1"}, slow: make(chan struct{}, failuresAtOnce)}
	for _, h := range hosts {
		if h = bareHost(h); h != "" {
			g.hosts = append(g.hosts, h)
		}
	}
	return g
}

// bareHost is a host without its port, in small letters.
func bareHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// ServeHTTP answers a request.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := g.foreign(r); err != nil {
		g.api.fail(w, r, err)
		return
	}
	if _, pattern := g.api.mux.Handler(r); access[pattern].scope == open && pattern != "/" {
		g.api.ServeHTTP(w, r)
		return
	}
	t, err := g.token(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	g.api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, t)))
}

// foreign refuses what a browser was made to send from another page, or for another
// name.
func (g *Gate) foreign(r *http.Request) error {
	if !slices.Contains(g.hosts, bareHost(r.Host)) {
		return &statusError{http.StatusMisdirectedRequest, fault.Errorf(fault.Denied, "this API is not called %s; add it to admin.allowed_hosts", bareHost(r.Host))}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if r.Method != http.MethodGet && r.Method != http.MethodHead && site != "" && site != "same-origin" && site != "none" {
		return fault.Errorf(fault.Denied, "a page of another site may not write here")
	}
	return nil
}

// errToken: it is not said what is wrong with a token.
var errToken = fault.Errorf(fault.Denied, "a token that counts is needed: Authorization: Bearer TOKEN; leasehold tokens create makes one")

// token is the caller's token. errToken: there is none, or it counts no more.
func (g *Gate) token(r *http.Request) (apitoken.Token, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	text = strings.TrimSpace(text)
	id := apitoken.ID(text)
	if !strings.EqualFold(scheme, "bearer") || id == "" {
		return apitoken.Token{}, errToken
	}
	t, err := g.api.o.Store.Token(r.Context(), id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return apitoken.Token{}, err //nolint:wrapcheck // it says what was being done
	}
	if !t.Is(text) || t.Expired(time.Now()) {
		return apitoken.Token{}, errToken
	}
	if time.Since(t.UsedAt) > touchEvery {
		if err := g.api.o.Store.TouchToken(r.Context(), t.ID); err != nil {
			g.api.o.Log.DebugContext(r.Context(), "use of a token not noted", "token", t.Name, "error", err)
		}
	}
	return t, nil
}

// refuse answers a request without a token that counts, not soon.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if err != errToken { //nolint:errorlint // it is returned as it is
		g.api.fail(w, r, err)
		return
	}
	select {
	case g.slow <- struct{}{}:
		defer func() { <-g.slow }()
	default:
		g.api.fail(w, r, &statusError{http.StatusTooManyRequests, fault.Errorf(fault.Temporary, "too many wrong tokens at once; try again later")})
		return
	}
	if loop.Sleep(r.Context(), failureDelay) != nil {
		return // nobody waits for it
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	g.api.fail(w, r, &statusError{http.StatusUnauthorized, err})
}
