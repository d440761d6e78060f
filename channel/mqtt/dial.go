package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
	"leasehold/internal/handshake"
)

// upgradeTimeout bounds everything from the first packet to the upgrade's answer.
const upgradeTimeout = 10 * time.Second

// subprotocol is MQTT's name within WebSocket.
const subprotocol = "mqtt"

// dial connects as the URL says. Its errors are classified and hold no secret.
func (p *plan) dial(ctx context.Context, link *channel.Link) (conn net.Conn, err error) {
	switch {
	case p.upgrades(p.url):
		return p.upgrade(ctx, link)
	case p.url.Scheme == "mqtts":
		conn, err = link.DialTLS(ctx, "tcp", p.server, p.tls)
	default:
		conn, err = link.DialContext(ctx, "tcp", p.server)
	}
	if err != nil {
		return nil, p.unreachable(err)
	}
	return conn, nil
}

// unreachable is a dial that did not succeed. What a person must mend is rejected.
func (p *plan) unreachable(err error) error {
	said := p.words.Error("connect to "+p.server+": ", handshake.Unanswered(err))
	if hint := untrusted(err); hint != "" {
		return channel.Rejected("tls", fmt.Errorf("%w; %s", said, hint))
	}
	return channel.Failed("dial", said)
}

// untrusted is the next step after a handshake that failed by a certificate; "" =
// it failed otherwise.
func untrusted(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
	)
	switch {
	case errors.As(err, &authority):
		return "set ca_file to the certificate that signed the broker's"
	case errors.As(err, &name):
		return "use the name in the broker's certificate in url"
	case alerted(err):
		return "check cert_file and key_file"
	}
	return ""
}

// alerted reports whether the other side ended TLS for a reason.
func alerted(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// upgrade dials a WebSocket and makes a stream of it.
func (p *plan) upgrade(ctx context.Context, link *channel.Link) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeTimeout)
	defer cancel()
	client := link.HTTPClient()
	defer client.CloseIdleConnections() // a refused upgrade leaves its connection there
	if t, ok := client.Transport.(*http.Transport); ok && p.tls != nil {
		cfg := t.TLSClientConfig.Clone()
		if cfg == nil {
			cfg = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if cfg.Certificates = p.tls.Certificates; p.tls.RootCAs != nil {
			cfg.RootCAs = p.tls.RootCAs
		}
		t.TLSClientConfig = cfg
	}
	ws, resp, err := websocket.Dial(ctx, p.url.String(), &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{subprotocol}}) //nolint:bodyclose // the library leaves nothing to close
	if err != nil {
		return nil, p.notUpgraded(resp, err)
	}
	if ws.Subprotocol() != subprotocol {
		_ = ws.CloseNow()
		return nil, channel.Rejected("subprotocol", fmt.Errorf("%s speaks WebSocket, but not MQTT within it; check url", p.server))
	}
	ws.SetReadLimit(-1) // packets have limits of their own, and messages are read as they come
	return stream{websocket.NetConn(context.Background(), ws, websocket.MessageBinary), ws}, nil
}

// notUpgraded classifies a handshake that did not succeed.
func (p *plan) notUpgraded(resp *http.Response, err error) error {
	if resp == nil {
		return p.unreachable(err)
	}
	said := p.words.Show(handshake.Answer(resp))
	code := fmt.Sprintf("http_%d", resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return channel.Rejected("auth", fmt.Errorf("the server refused us: %s; check url and cert_file", said))
	case http.StatusTooManyRequests:
		return channel.RateLimited(fmt.Errorf("the server wants us to wait: %s", said), handshake.RetryAfter(resp, handshake.Sulk))
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusUpgradeRequired:
		return channel.Rejected(code, fmt.Errorf("the server does not upgrade at this address: %s; check url", said))
	default:
		return channel.Failed(code, fmt.Errorf("the server did not upgrade: %s", said))
	}
}

// stream is a WebSocket as a net.Conn whose Close does not wait for the other side.
type stream struct {
	net.Conn
	ws *websocket.Conn
}

func (s stream) Close() error { return s.ws.CloseNow() }
