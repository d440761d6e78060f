package channeltest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"leasehold/channel"
)

// dialTimeout is the Link's promise for a dial.
const dialTimeout = 10 * time.Second

// DialContext dials and registers the connection with the term.
func (b *Bench) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := b.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return b.register(c)
}

// DialTLS is DialContext with a handshake.
func (b *Bench) DialTLS(ctx context.Context, network, addr string, cfg *tls.Config) (net.Conn, error) {
	c, err := b.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg = cfg.Clone()
	if cfg == nil {
		cfg = &tls.Config{}
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secured := tls.Client(c, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secured, nil
}

// HTTPClient is a client over a fresh Transport; it follows no redirect to
// another host.
func (b *Bench) HTTPClient() *http.Client {
	c := &http.Client{
		Transport: &http.Transport{DialContext: b.DialContext},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != via[0].URL.Host || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients = append(b.clients, c)
	return c
}

func (b *Bench) register(c net.Conn) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		_ = c.Close()
		return nil, channel.ErrKilled
	}
	b.conns = append(b.conns, c)
	return &benchConn{Conn: c, bench: b}, nil
}

// benchConn says ErrKilled after the kill, as the engine's connections do.
type benchConn struct {
	net.Conn
	bench *Bench
}

func (c *benchConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.killed(err)
}

func (c *benchConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.killed(err)
}

func (c *benchConn) killed(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.bench.killed:
		return channel.ErrKilled
	default:
		return err
	}
}
