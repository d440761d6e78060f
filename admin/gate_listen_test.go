package admin_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/admin"
	"leasehold/internal/certtest"
	"leasehold/internal/fault"
)

func certify(t *testing.T, serial int64) certtest.Pair {
	t.Helper()
	p, err := certtest.New(serial)
	must(t, err)
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served is the API over TLS.
type served struct {
	*testing.T
	address   string
	cert, key string // paths
	token     string
}

func newServed(t *testing.T, c certtest.Pair) *served {
	t.Helper()
	w := newWorld(t)
	dir := t.TempDir()
	s := &served{T: t, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	must(t, c.Put(s.cert, s.key))
	made, err := w.client().CreateToken(t.Context(), admin.TokenOrder{Name: "reader", Scopes: []string{"read"}})
	must(t, err)
	s.token = made.Text
	l, err := admin.ListenTCP(t.Context(), "127.0.0.1:0", s.cert, s.key)
	must(t, err)
	s.address = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- admin.ServeTCP(ctx, l, admin.NewGate(admin.New(w.options)), slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// client asks with what it trusts.
func (s *served) client(trusts *tls.Config) *http.Client {
	t := &http.Transport{TLSClientConfig: trusts}
	s.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// ask asks for the version and returns the status and the serial of the certificate.
func (s *served) ask(c *http.Client, token string) (status int, serial int64, err error) {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://"+s.address+"/v1/version", nil)
	must(s.T, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := c.Do(r)
	if err != nil {
		return 0, 0, err
	}
	_, _ = io.Copy(io.Discard, a.Body) // so that the connection is kept
	return a.StatusCode, a.TLS.PeerCertificates[0].SerialNumber.Int64(), a.Body.Close()
}

// want asks, and wants a status and a certificate.
func (s *served) want(c *http.Client, token string, status int, by certtest.Pair) {
	s.Helper()
	got, serial, err := s.ask(c, token)
	if err != nil || got != status || serial != by.Serial {
		s.Errorf("got %d under certificate %d, %v, want %d under %d", got, serial, err, status, by.Serial)
	}
}

func TestTLS(t *testing.T) {
	t.Run("it is asked over TLS 1.2 and above, by who knows its authority, with a token", func(t *testing.T) {
		c := certify(t, 1)
		s := newServed(t, c)
		trusting := s.client(&tls.Config{RootCAs: c.Authority()})
		s.want(trusting, s.token, http.StatusOK, c)
		s.want(trusting, "", http.StatusUnauthorized, c)
		s.want(s.client(&tls.Config{RootCAs: c.Authority(), MaxVersion: tls.VersionTLS12}), s.token, http.StatusOK, c)

		_, _, err := s.ask(s.client(&tls.Config{RootCAs: certify(t, 1).Authority()}), s.token)
		if !errors.As(err, new(x509.UnknownAuthorityError)) {
			t.Errorf("with another authority: got %v, want it unknown", err)
		}
		_, _, err = s.ask(s.client(&tls.Config{RootCAs: c.Authority(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), s.token)
		if err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("over TLS 1.1: got %v, want the version refused", err)
		}
	})

	t.Run("a renewed certificate counts from the next connection on, and no connection is lost for it", func(t *testing.T) {
		one, two := certify(t, 1), certify(t, 2)
		s := newServed(t, one)
		old := s.client(&tls.Config{RootCAs: one.Authority()})
		s.want(old, s.token, http.StatusOK, one)
		must(t, two.Put(s.cert, s.key))
		s.want(s.client(&tls.Config{RootCAs: two.Authority()}), s.token, http.StatusOK, two)
		s.want(old, s.token, http.StatusOK, one) // on the connection that it has

		// Half of a renewal does not count: what counted last goes on.
		must(t, os.WriteFile(s.key, one.Key, 0o600))
		s.want(s.client(&tls.Config{RootCAs: two.Authority()}), s.token, http.StatusOK, two)
		must(t, os.Remove(s.key))
		s.want(s.client(&tls.Config{RootCAs: two.Authority()}), s.token, http.StatusOK, two)
	})

	t.Run("who speaks plain HTTP to it is told so, and shows no token that is heard", func(t *testing.T) {
		s := newServed(t, certify(t, 1))
		way, err := admin.Remote("http://"+s.address, "lht_0123456789ab_planted")
		must(t, err)
		c := admin.NewClient(way)
		defer c.Close()
		_, err = c.Status(t.Context())
		if err == nil || !strings.Contains(err.Error(), "HTTP request to an HTTPS server") || strings.Contains(err.Error(), "planted") {
			t.Errorf("got %v, want to be told that it speaks HTTPS", err)
		}
	})

	t.Run("files that are no certificate are named before anything listens", func(t *testing.T) {
		dir := t.TempDir()
		path := func(name string, content []byte) string {
			must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
			return filepath.Join(dir, name)
		}
		one, two := certify(t, 1), certify(t, 2)
		for name, pair := range map[string][2]string{
			"none":         {filepath.Join(dir, "none"), filepath.Join(dir, "none")},
			"no PEM":       {path("x.pem", []byte("x")), path("x.key", []byte("x"))},
			"another's":    {path("1.pem", one.Cert), path("2.key", two.Key)},
			"the same one": {path("3.pem", one.Cert), path("3.key", one.Cert)},
		} {
			_, err := admin.ListenTCP(t.Context(), "127.0.0.1:0", pair[0], pair[1])
			for _, err := range []error{err, admin.CheckCertificate(pair[0], pair[1])} {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "admin.tls_cert and admin.tls_key") {
					t.Errorf("%s: got %v, want both keys of the config named", name, err)
				}
			}
		}
	})
}
