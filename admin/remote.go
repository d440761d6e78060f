package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"leasehold/internal/fault"
)

// Remote is the way in over TCP to another box: its address, such as
// https://gw.example.org:8470, and a token. fault.Invalid: the address, or one that
// would show the token to whoever listens on the way.
func Remote(server, token string) (http.RoundTripper, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "":
		return nil, fault.Errorf(fault.Invalid, "the address of a server is such as https://gw.example.org:8470")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fault.Errorf(fault.Invalid, "http:// to another machine shows the token on the way; use https://")
	case token == "":
		return nil, fault.Errorf(fault.Invalid, "a server wants a token: --token-file FILE; leasehold tokens create on that box makes one")
	}
	return &remote{u, token, &http.Transport{
		DialContext:         (&net.Dialer{Timeout: answerWithin}).DialContext,
		TLSHandshakeTimeout: answerWithin, MaxIdleConns: 2, IdleConnTimeout: 10 * time.Second,
	}}, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// remote sends every request to one server, so that no redirect takes the token along.
type remote struct {
	server *url.URL
	token  string
	next   *http.Transport
}

func (t *remote) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = t.server.Scheme, t.server.Host, ""
	out.Header.Set("Authorization", "Bearer "+t.token)
	return t.next.RoundTrip(out)
}

func (t *remote) CloseIdleConnections() { t.next.CloseIdleConnections() }
