package websocket

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
)

// dialTimeout bounds everything from the first packet to the upgrade's answer.
const dialTimeout = 10 * time.Second

// dial connects and upgrades. Its errors are classified and hold no secret.
func (s *socket) dial(ctx context.Context, link *channel.Link) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	p := s.plan
	address, _ := p.url.Render(jsonframe.Values{Secrets: p.secrets, Cursor: p.resumeFrom(link.Cursor())})
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
		return channel.Failed("dial", p.words.Error("connect to "+p.place+": ", handshake.Unanswered(err)))
	}
	said := p.words.Show(handshake.Answer(resp))
	switch code := resp.StatusCode; {
	case code == http.StatusSwitchingProtocols: // upgraded, but wrongly
		return channel.Failed("handshake", fmt.Errorf("the server's upgrade is no WebSocket: %s", p.words.Show(err.Error())))
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return channel.Rejected("auth", fmt.Errorf("the server refused the credentials: %s; check headers and secrets", said))
	case code == http.StatusTooManyRequests:
		return channel.RateLimited(fmt.Errorf("the server wants us to wait: %s", said), handshake.RetryAfter(resp, handshake.Sulk))
	case code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return channel.RateLimited(fmt.Errorf("the server wants us to wait: %s", said), handshake.RetryAfter(resp, handshake.Sulk))
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusGone,
		code == http.StatusUpgradeRequired, code >= 300 && code < 400:
		return channel.Rejected(fmt.Sprintf("http_%d", code), fmt.Errorf("the server does not upgrade at this address: %s; check url and subprotocol", said))
	default:
		return channel.Failed(fmt.Sprintf("http_%d", code), fmt.Errorf("the server did not upgrade: %s", said))
	}
}
