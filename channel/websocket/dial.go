package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
)

const (
	// dialTimeout bounds everything from the first packet to the upgrade's answer.
	dialTimeout = 10 * time.Second
	// sulk is how long a server is left alone that says "too much" without saying
	// how long.
	sulk = 30 * time.Second
	// maxRetryAfter is the longest wait that a server can impose: a mistaken year
	// must not silence a bot for ever.
	maxRetryAfter = 24 * time.Hour
)

// dial connects and upgrades. Its errors are classified and hold no secret.
func (s *socket) dial(ctx context.Context, link *channel.Link) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	p := s.plan
	address, _ := p.url.render(values{secrets: p.secrets, cursor: p.resumeFrom(link.Cursor())})
	client := link.HTTPClient()
	defer client.CloseIdleConnections() // a refused upgrade leaves its connection there
	c := &conn{wire: &wire{}}
	tapped := *client
	tapped.Transport = &tap{client.Transport, c.wire}
	ws, resp, err := websocket.Dial(ctx, string(address), &websocket.DialOptions{ //nolint:bodyclose // the library closes it, and hands out the first 1,024 bytes
		HTTPClient: &tapped, HTTPHeader: p.header, Host: p.host, Subprotocols: p.subprotocol,
		OnPingReceived: func(context.Context, []byte) bool { c.frame(); return true },
		OnPongReceived: func(context.Context, []byte) { c.frame() },
	})
	if err != nil {
		return nil, p.refused(resp, err)
	}
	ws.SetReadLimit(readLimit)
	c.Conn = ws
	return c, nil
}

// refused classifies a handshake that did not succeed.
func (p *plan) refused(resp *http.Response, err error) error {
	if resp == nil {
		return p.unreachable(err)
	}
	said := p.answer(resp)
	switch code := resp.StatusCode; {
	case code == http.StatusSwitchingProtocols: // upgraded, but wrongly
		return channel.Failed("handshake", fmt.Errorf("the server's upgrade is no WebSocket: %s", p.words(err.Error())))
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return channel.Rejected("auth", fmt.Errorf("the server refused the credentials: %s; check headers and secrets", said))
	case code == http.StatusTooManyRequests:
		return channel.RateLimited(fmt.Errorf("the server wants us to wait: %s", said), retryAfter(resp, sulk))
	case code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return channel.RateLimited(fmt.Errorf("the server wants us to wait: %s", said), retryAfter(resp, sulk))
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusGone,
		code == http.StatusUpgradeRequired, code >= 300 && code < 400:
		return channel.Rejected(fmt.Sprintf("http_%d", code), fmt.Errorf("the server does not upgrade at this address: %s; check url and subprotocol", said))
	default:
		return channel.Failed(fmt.Sprintf("http_%d", code), fmt.Errorf("the server did not upgrade: %s", said))
	}
}

// unreachable is a dial without an answer. The URL, in which a secret may stand,
// is left out of it.
func (p *plan) unreachable(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return channel.Failed("dial", &cleaned{fmt.Sprintf("connect to %s: %s", p.place, p.words(err.Error())), err})
}

// answer is the server's refusal in its own words: the status, and the body where
// it is text and no page.
func (p *plan) answer(resp *http.Response) string {
	said := resp.Status
	if kind := resp.Header.Get("Content-Type"); resp.Body != nil && !strings.Contains(kind, "html") {
		if body, err := io.ReadAll(io.LimitReader(resp.Body, 1024)); err == nil && len(body) > 0 {
			said += ": " + string(body)
		}
	}
	return p.words(said)
}

// retryAfter reads the header: seconds, or a date, which is compared with the
// server's own clock where it shows it.
func retryAfter(resp *http.Response, otherwise time.Duration) time.Duration {
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return otherwise
	}
	now := time.Now()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), time.Second), maxRetryAfter)
}

// cleaned is an error whose text is free of secrets; what it wraps decides only.
type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }
