package delivery

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
)

func TestGzip(t *testing.T) {
	type request struct{ encoding, body string }
	var got []request
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			if z, err := gzip.NewReader(r.Body); err == nil {
				in = z
			}
		}
		b, _ := io.ReadAll(in)
		got = append(got, request{r.Header.Get("Content-Encoding"), string(b)})
		w.WriteHeader(status)
	}))
	defer srv.Close()
	s := sinkFor(t, Target{URL: srv.URL, Gzip: true})
	for _, c := range []struct {
		size int
		want string
	}{{gzipMin - 1, ""}, {gzipMin, "gzip"}, {3 << 20, "gzip"}} {
		body := strings.Repeat("x", c.size)
		same(t, "outcome", s.Deliver(t.Context(), Delivery{ID: "msg_1", Envelope: []byte(body)}).Outcome, Taken)
		last := got[len(got)-1]
		if last.encoding != c.want || last.body != body {
			t.Errorf("%d bytes: got %q and %d bytes, want %q and the same", c.size, last.encoding, len(last.body), c.want)
		}
	}
	status = http.StatusUnsupportedMediaType
	r := s.Deliver(t.Context(), Delivery{ID: "msg_1", Envelope: bytes.Repeat([]byte("x"), gzipMin)})
	if r.Outcome != Refused || r.NextStep != stepGzip {
		t.Errorf("got %+v, want it refused with what to do about the encoding", r)
	}
}

// pair makes a certificate with its key, both in PEM, signed by another or itself.
func pair(t *testing.T, by *tls.Certificate) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := own, any(private)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, own, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func TestClientCertificate(t *testing.T) {
	authority, authorityKey := pair(t, nil)
	ca, err := tls.X509KeyPair(authority, authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := pair(t, &ca)
	_, otherKey := pair(t, &ca)
	strangers, strangersKey := pair(t, nil)
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: version, MinVersion: tls.VersionTLS12}
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		root := write("root.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
		for name, c := range map[string]struct {
			cert, key []byte
			want      Outcome
			step      string
		}{
			"its own": {cert, key, Taken, ""}, "none": {nil, nil, Down, stepCertificate}, "a stranger's": {strangers, strangersKey, Down, stepCertificate},
		} {
			target := Target{URL: srv.URL, CAFile: root}
			if c.cert != nil {
				target.ClientCert, target.ClientKey = write("cert.pem", c.cert), channel.NewText(string(c.key))
			}
			if c.cert == nil && version == tls.VersionTLS12 {
				c.step = stepTLS // its alert does not say more
			}
			if r := attempt(t, sinkFor(t, target)); r.Outcome != c.want || r.NextStep != c.step {
				t.Errorf("%s under %s: got %+v, want %v", name, tls.VersionName(version), r, c.want)
			}
		}
	}

	t.Run("what is no pair is a fault", func(t *testing.T) {
		file := write("cert.pem", cert)
		for name, c := range map[string]struct {
			target Target
			want   string
		}{
			"the key of another":  {Target{ClientCert: file, ClientKey: channel.NewText(string(otherKey))}, `client_cert: it and client_key are no pair: tls: private key does not match public key`},
			"a key that is none":  {Target{ClientCert: file, ClientKey: channel.NewText("hunter2hunter2")}, "client_cert: it and client_key are no pair"},
			"a file that is none": {Target{ClientCert: write("x", []byte("x")), ClientKey: channel.NewText(string(key))}, "client_cert: it and client_key are no pair"},
			"no file":             {Target{ClientCert: filepath.Join(dir, "nothing"), ClientKey: channel.NewText(string(key))}, "client_cert: read certificate: open"},
			"no key":              {Target{ClientCert: file}, "client_cert: goes with client_key"},
			"no certificate":      {Target{ClientKey: channel.NewText(string(key))}, "client_cert: goes with client_key"},
		} {
			c.target.Name, c.target.Kind, c.target.URL = "app", "http", "https://localhost/"
			_, err := New(newOutbox(), []Target{c.target}, Options{})
			if !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
		}
	})

	t.Run("a certificate that was renewed is another setup", func(t *testing.T) {
		file := write("renewed.pem", cert)
		target := Target{Name: "app", Kind: "http", URL: "https://localhost/", ClientCert: file, ClientKey: channel.NewText(string(key))}
		d, err := New(newOutbox(), []Target{target}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "changed", changedBy(t, d, target), "[]")
		write("renewed.pem", append(bytes.Clone(cert), authority...))
		same(t, "changed", changedBy(t, d, target), "[app]")
	})
}

func changedBy(t *testing.T, d *Dispatcher, target Target) string {
	t.Helper()
	c, err := d.Prepare(Settings{Targets: []Target{target}})
	if err != nil {
		t.Fatal(err)
	}
	_, changed, _ := c.Apply()
	return fmt.Sprint(changed)
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "app.sock")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Host + r.RequestURI })}
	defer func() { _ = srv.Close() }()
	go func() { _ = srv.Serve(l) }()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // not for a socket
	everywhere, err := DenyCIDRs([]string{"0.0.0.0/0", "::/0"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "outcome", attempt(t, sinkFor(t, Target{URL: "http+unix://" + socket + ":/events?a=1", Deny: everywhere})).Outcome, Taken)
	same(t, "request", got, "localhost/events?a=1")
	same(t, "outcome", attempt(t, sinkFor(t, Target{URL: "http+unix:///nowhere/app.sock:/events"})).Outcome, Down)
}

func TestDeny(t *testing.T) {
	deny, err := DenyCIDRs([]string{"127.0.0.0/8", "::1/128", "::ffff:169.254.0.0/112", "fe80::1/10"})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("an address counts in whatever form", func(t *testing.T) {
		for s, want := range map[string]bool{
			"127.0.0.1": true, "127.255.0.9": true, "::1": true, "::ffff:127.0.0.1": true, "169.254.169.254": true, "::ffff:169.254.169.254": true,
			"64:ff9b::a9fe:a9fe": true, "fe80::5%eth0": true, "128.0.0.1": false, "::2": false, "64:ff9b::808:808": false, "fec0::1": false,
		} {
			if got := isDenied(deny, plain(netip.MustParseAddr(s))); got != want {
				t.Errorf("%s: got %v, want %v", s, got, want)
			}
		}
		for _, s := range []string{"", "localhost", "10.0.0.1", "10.0.0.0/33"} {
			if _, err := DenyCIDRs([]string{s}); err == nil {
				t.Errorf("%q: got no error, want one", s)
			}
		}
	})

	t.Run("a name is looked at when it was resolved", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("got a call, want none") }))
		defer srv.Close()
		r := attempt(t, sinkFor(t, Target{URL: strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), Deny: deny}))
		if r.Outcome != Down || r.NextStep != stepDenied || !strings.Contains(r.Reason, "is one of the addresses that no target may have") {
			t.Errorf("got %+v, want it down", r)
		}
	})

	t.Run("somebody's own dialer is looked at when it has arrived", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("got a call, want none") }))
		defer srv.Close()
		s, err := newHTTPSink(Target{Name: "app", URL: "http://elsewhere.test/", Deny: deny}.withDefaults(), func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
		}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		same(t, "next step", attempt(t, s).NextStep, stepDenied)
	})

	t.Run("an address that can never work is a fault", func(t *testing.T) {
		for _, address := range []string{"http://127.0.0.1:3000/", "http://[::ffff:127.0.0.1]/", "https://[fe80::1%25eth0]/"} {
			_, err := New(newOutbox(), []Target{{Name: "app", Kind: "http", URL: address, Deny: deny}}, Options{})
			if !strings.Contains(fmt.Sprint(err), `target "app": url: `) || !strings.Contains(fmt.Sprint(err), "is one of the addresses") {
				t.Errorf("%s: got %v, want a fault", address, err)
			}
		}
	})
}
