package admin

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"leasehold/internal/fault"
)

// certificate is the pair in two files: one that is renewed in its place counts from
// the next connection on, and half of a renewal does not.
type certificate struct {
	cert, key string // paths

	mu   sync.Mutex       // guards what follows
	last *tls.Certificate // that was whole
}

func (c *certificate) now() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.last = &pair
	case c.last == nil:
		return nil, fault.Errorf(fault.Invalid, "admin.tls_cert and admin.tls_key: %w", err)
	}
	return c.last, nil
}

// CheckCertificate says what is wrong with the files of a certificate and its key,
// fault.Invalid. "" = there is none.
func CheckCertificate(cert, key string) error {
	if cert == "" {
		return nil
	}
	_, err := (&certificate{cert: cert, key: key}).now()
	return err
}

// ListenTCP opens an address for a Gate, with TLS where there is a certificate: one that
// is renewed in its place counts from the next connection on. fault.Invalid: the
// certificate, or the address.
func ListenTCP(ctx context.Context, address, cert, key string) (net.Listener, error) {
	files := &certificate{cert: cert, key: key}
	if cert != "" {
		if _, err := files.now(); err != nil {
			return nil, err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "admin.listen: %w", err)
	}
	if cert == "" {
		return l, nil
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return files.now() },
	}), nil
}

// ServeTCP answers on l as Serve does on the local socket, for whoever has a token.
func ServeTCP(ctx context.Context, l net.Listener, g *Gate, log *slog.Logger) error {
	if err := serve(ctx, l, g, nil, log); err != nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}
