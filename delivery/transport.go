package delivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// newTransport makes what the calls of a target go through. It makes no connection.
func newTransport(t Target, socket string, dial Dialer) (*http.Transport, error) {
	config, err := tlsFor(t)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	switch {
	case socket != "":
		proxy, dial = nil, toSocket(socket)
	case dial == nil:
		dial = guarded(t.Deny)
	default:
		dial = watched(dial, t.Deny)
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         bounded(dial),
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true, // a custom dialer or TLS config turns it off otherwise
		MaxIdleConns:        t.Concurrency,
		MaxIdleConnsPerHost: t.Concurrency,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true, // the limit counts what comes over the wire
	}, nil
}

func tlsFor(t Target) (*tls.Config, error) {
	roots, err := trust(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("target %q: ca_file: %w", t.Name, err)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if t.ClientCert != "" {
		pem, err := os.ReadFile(t.ClientCert)
		if err != nil {
			return nil, fmt.Errorf("target %q: client_cert: read certificate: %w", t.Name, err)
		}
		// Its errors are about the form of the two, and repeat nothing of the key.
		pair, err := tls.X509KeyPair(pem, []byte(t.ClientKey.Reveal()))
		if err != nil {
			return nil, fmt.Errorf("target %q: client_cert: it and client_key are no pair: %w", t.Name, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// trust returns the system's authorities and those of a file; nil = the system's.
func trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // nil is the pool that tls takes for the system's
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}

func bounded(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

func toSocket(path string) Dialer {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

// deniedError is about an address that no target may have.
type deniedError struct{ addr netip.Addr }

func (e *deniedError) Error() string {
	return fmt.Sprintf("%s is one of the addresses that no target may have", e.addr)
}

// guarded dials, and looks at each address at the last moment: what a name resolves
// to when it is checked need not be what it resolves to when it is used. Of several
// addresses those that are allowed are tried.
func guarded(deny []netip.Prefix) Dialer {
	d := &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return denied(deny, address)
	}}
	return d.DialContext
}

// watched looks at where a dialer of somebody else's has arrived.
func watched(dial Dialer, deny []netip.Prefix) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := denied(deny, c.RemoteAddr().String()); err != nil {
			_ = c.Close() // nothing was sent
			return nil, err
		}
		return c, nil
	}
}

// denied is nil for what is no IP address: it is none of the denied ones.
func denied(deny []netip.Prefix, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil //nolint:nilerr // a pipe in a test
	}
	if addr := plain(at.Addr()); isDenied(deny, addr) {
		return &deniedError{addr}
	}
	return nil
}

func isDenied(deny []netip.Prefix, addr netip.Addr) bool {
	for _, p := range deny {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// nat64 is the prefix under which a network's translator reaches IPv4 (RFC 6052).
//
//nolint:gochecknoglobals // a constant, if Go had such
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// plain is the address that packets go to in the end: IPv4 without its coats of
// IPv6, and no zone.
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// DenyCIDRs reads ranges of addresses, such as 169.254.0.0/16, for Target.Deny.
func DenyCIDRs(ranges []string) ([]netip.Prefix, error) {
	deny := make([]netip.Prefix, 0, len(ranges))
	for _, s := range ranges {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, fmt.Errorf("%q is no range of addresses such as 169.254.0.0/16", s)
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		deny = append(deny, p.Masked())
	}
	return deny, nil
}

// wantsCertificate reports whether the other end broke off because of the certificate
// that we showed, or did not show. Under TLS 1.3 that comes after the handshake, when
// the call was sent already: it was not read.
func wantsCertificate(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}
