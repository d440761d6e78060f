package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"leasehold/channel"
)

// sockets are a term's kill switch: every connection that it has, and what else
// must stop with them. After the kill nothing can be added.
type sockets struct {
	mu    sync.Mutex // guards what follows
	dead  bool
	conns []*conn
	hooks []func()
}

// kill closes everything. What was written but not yet sent is thrown away: the
// peer must not hear from a term that is over.
func (s *sockets) kill() {
	s.mu.Lock()
	conns, hooks := s.conns, s.hooks
	s.dead, s.conns, s.hooks = true, nil, nil
	s.mu.Unlock()
	for _, c := range conns {
		c.abort()
	}
	for _, f := range hooks {
		f()
	}
}

func (s *sockets) onKill(f func()) {
	s.mu.Lock()
	dead := s.dead
	if !dead {
		s.hooks = append(s.hooks, f)
	}
	s.mu.Unlock()
	if dead {
		f()
	}
}

// add registers a connection, or closes it and refuses: a dial may finish after
// the kill.
func (s *sockets) add(c *conn) error {
	s.mu.Lock()
	dead := s.dead
	if !dead {
		s.conns = append(s.conns, c)
	}
	s.mu.Unlock()
	if dead {
		c.abort()
		return channel.ErrKilled
	}
	return nil
}

func (s *sockets) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, have := range s.conns {
		if have == c {
			last := len(s.conns) - 1
			s.conns[i], s.conns[last] = s.conns[last], nil
			s.conns = s.conns[:last]
			return
		}
	}
}

// conn is a connection of a term. Its Read and Write pass the gate themselves,
// so that a process that stood still beyond the fence neither says nor hears
// anything when it wakes, before any timer has fired.
type conn struct {
	net.Conn
	t    *term
	once sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if gateErr := c.t.gate.pass(); gateErr != nil {
		return 0, killedBy(gateErr)
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.t.gate.pass(); err != nil {
		return 0, killedBy(err)
	}
	n, err := c.Conn.Write(b)
	if err != nil && c.t.gate.shut.Load() {
		err = channel.ErrKilled
	}
	return n, err
}

// killedBy is never net.ErrClosed: a protocol library took that for its own
// doing, and stayed "connected".
func killedBy(err error) error {
	if errors.Is(err, channel.ErrKilled) {
		return err
	}
	return fmt.Errorf("%w: %w", channel.ErrKilled, err)
}

func (c *conn) Close() error {
	c.t.socks.remove(c)
	err := net.ErrClosed
	c.once.Do(func() { err = c.Conn.Close() })
	return err
}

// abort closes without sending what is buffered, and wakes who reads or writes.
// Nothing can be done about what its steps answer.
func (c *conn) abort() {
	c.once.Do(func() {
		if l, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
			_ = l.SetLinger(0)
		}
		_ = c.SetDeadline(time.Unix(1, 0))
		_ = c.Conn.Close()
	})
}

// dialTimeout bounds a dial and, apart from it, a TLS handshake.
const dialTimeout = 10 * time.Second

// DialContext dials under the term's context as well as the caller's: a dial
// or a look-up under a context of somebody else's must not outlive the term.
func (t *term) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := t.gate.pass(); err != nil {
		return nil, killedBy(err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stop := context.AfterFunc(t.dead, cancel)
	defer stop()
	raw, err := t.s.o.Connect.Dial(ctx, network, addr)
	if err != nil {
		if t.gate.shut.Load() {
			return nil, channel.ErrKilled
		}
		return nil, err
	}
	c := &conn{Conn: raw, t: t}
	if err := t.socks.add(c); err != nil {
		return nil, err
	}
	return c, nil
}

// DialTLS dials and shakes hands.
func (t *term) DialTLS(ctx context.Context, network, addr string, cfg *tls.Config) (net.Conn, error) {
	raw, err := t.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg = t.tlsConfig(cfg)
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		cfg.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

func (t *term) tlsConfig(cfg *tls.Config) *tls.Config {
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	} else {
		cfg = cfg.Clone()
	}
	if cfg.RootCAs == nil {
		cfg.RootCAs = t.s.o.Connect.RootCAs
	}
	return cfg
}

// HTTPClient is a client of the term's sockets, with a Transport of its own: a
// dead HTTP/2 connection in a shared one failed six requests of six.
func (t *term) HTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: t.s.o.Connect.Proxy, DialContext: t.DialContext, TLSClientConfig: t.tlsConfig(nil),
			TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, // a custom dialer switches HTTP/2 off otherwise
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) >= 10 {
				return http.ErrUseLastResponse // our headers are for the host they were made for
			}
			return nil
		},
	}
}
