//go:build unix

package mqtt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"leasehold/channel"
	"leasehold/internal/freeport"
)

// authority signs certificates, in files of a folder.
type authority struct {
	*testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign writes NAME.crt and NAME.key.
func (a *authority) sign(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) {
	a.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// secured runs a mosquitto that speaks TLS to who has a certificate, plainly and
// within WebSocket, and WebSocket without TLS.
func secured(t *testing.T) (m *mosquitto, a *authority, ports map[string]string) {
	t.Helper()
	a = newAuthority(t)
	a.sign("broker", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.sign("device", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	ports = map[string]string{}
	for _, scheme := range []string{"mqtts", "wss", "ws"} {
		ports[scheme] = strconv.Itoa(freeport.Of(t))
	}
	tls := "\ncafile " + a.file("ca.crt") + "\ncertfile " + a.file("broker.crt") + "\nkeyfile " + a.file("broker.key") + "\nrequire_certificate true"
	m = startMosquitto(t,
		"listener "+ports["mqtts"]+" 127.0.0.1"+tls,
		"listener "+ports["wss"]+" 127.0.0.1\nprotocol websockets"+tls,
		"listener "+ports["ws"]+" 127.0.0.1\nprotocol websockets",
	)
	for _, port := range ports {
		m.listens("127.0.0.1:" + port)
	}
	return m, a, ports
}

func TestTransports(t *testing.T) {
	for _, scheme := range []string{"mqtts", "ws", "wss"} {
		for _, version := range versions {
			t.Run(scheme+" "+version, func(t *testing.T) {
				t.Parallel()
				m, a, ports := secured(t)
				l := newLive(t, "127.0.0.1:"+ports[scheme])
				l.config["url"], l.config["version"] = scheme+"://"+l.proxy.Addr()+"/", version
				l.config["client_id"], l.config["keep_alive"] = scheme+version, "1s"
				if scheme != "ws" {
					l.config["ca_file"], l.config["cert_file"], l.config["key_file"] = a.file("ca.crt"), a.file("device.crt"), a.file("device.key")
				}
				b, s := l.connected()
				if _, err := s.Send(t.Context(), to("lamps/1", "on")); err != nil {
					t.Errorf("send: %v", err)
				}
				m.publish(300, 1, false)
				l.kept(300)
				l.proxy.Cut()
				if got := channel.Classify(b.Wait()); got.Class != channel.Transient {
					t.Errorf("got %s (%v) after a cut, want transient", got.Class, got.Err)
				}
				m.publish(10, 1, false)
				b, _ = l.connected()
				l.kept(310)
				l.proxy.Pause()
				l.stop(b) // over a mute line, too
				l.proxy.Resume()
				b, _ = l.connected()
				l.proxy.BlackholeExisting()
				start := time.Now()
				got := channel.Classify(b.Wait())
				if took := time.Since(start); got.Code != "silent" || took > 2*time.Second+busy {
					t.Errorf("got %q (%v) after %s on a dead line, want silent within twice the keep_alive", got.Code, got.Err, took)
				}
			})
		}
	}
}

func TestCertificates(t *testing.T) {
	_, a, ports := secured(t)
	other := newAuthority(t)
	other.sign("device", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	for name, c := range map[string]struct {
		config map[string]any
		words  string
	}{
		"nobody whom we trust has signed the broker's": {map[string]any{}, "set ca_file"},
		"the broker's is of another name":              {map[string]any{"host": "localhost", "ca_file": a.file("ca.crt")}, "use the name in the broker's certificate"},
		"the broker wants one and we have none":        {map[string]any{"ca_file": a.file("ca.crt")}, "check cert_file"},
		"the broker does not trust ours": {map[string]any{
			"ca_file": a.file("ca.crt"), "cert_file": other.file("device.crt"), "key_file": other.file("device.key"),
		}, "check cert_file"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, "127.0.0.1:"+ports["mqtts"])
			host, port, _ := net.SplitHostPort(l.proxy.Addr())
			for key, value := range c.config {
				if l.config[key] = value; key == "host" {
					host = value.(string)
				}
			}
			delete(l.config, "host")
			l.config["url"] = "mqtts://" + net.JoinHostPort(host, port)
			var got channel.Exit
			for range 20 { // a broker that closes behind its words may take them back: the next attempt hears them
				b, _ := l.start()
				if got = channel.Classify(b.Wait()); got.Class != channel.Transient {
					break
				}
			}
			if got.Class != channel.ClassRejected || got.Code != "tls" || !strings.Contains(got.Err.Error(), c.words) {
				t.Errorf("got %s %q (%v), want rejected tls and %q", got.Class, got.Code, got.Err, c.words)
			}
		})
	}
}

func TestWebSocketsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		class channel.Class
		code  string
	}{
		"no such page":        {http.NotFound, channel.ClassRejected, "http_404"},
		"not for us":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "go away", http.StatusForbidden) }, channel.ClassRejected, "auth"},
		"out of order":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusBadGateway) }, channel.Transient, "http_502"},
		"one of another kind": {anotherKind, channel.ClassRejected, "subprotocol"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			l := newLive(t, server.Listener.Addr().String())
			l.config["url"] = "ws://" + l.proxy.Addr() + "/mqtt?signature=" + token
			b, _ := l.start()
			got := channel.Classify(b.Wait())
			if got.Class != c.class || got.Code != c.code {
				t.Errorf("got %s %q (%v), want %s %q", got.Class, got.Code, got.Err, c.class, c.code)
			}
			if strings.Contains(b.Said(), token) {
				t.Errorf("the query left the channel: %s", b.Said())
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		l := newLive(t, "127.0.0.1:1")
		l.config["url"] = "wss://" + l.proxy.Addr() + "/mqtt?signature=" + token
		b, _ := l.start()
		if got := channel.Classify(b.Wait()); got.Code != "dial" || strings.Contains(b.Said(), token) {
			t.Errorf("got %q (%v), want dial without the query", got.Code, got.Err)
		}
	})
}

func anotherKind(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	_, _, _ = c.Read(r.Context())
}
