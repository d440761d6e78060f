package mqtt

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"leasehold/internal/redact"
)

const (
	version5   = "5"
	version311 = "3.1.1"

	// minKeepAlive: the protocol counts whole seconds.
	minKeepAlive = time.Second
	maxKeepAlive = math.MaxUint16 * time.Second

	maxString = math.MaxUint16 // bytes of any string of the protocol
)

// plan is a Config checked, with its files read: all that a term needs.
type plan struct {
	url      *url.URL
	server   string // host:port
	tls      *tls.Config
	topics   []string
	qos      byte
	codec    codec
	clientID string // "" = made of the installation and the store
	username string
	password string

	keepAlive time.Duration
	expiry    uint32 // seconds
	id        finder // of an event in a message; nil = none

	words *redact.Words // what the broker says, without the password
}

// newPlan checks a config and reports every fault of it by its key.
func newPlan(c Config) (*plan, error) {
	p := &plan{topics: c.Topics, clientID: c.ClientID, username: c.Username, password: c.Password.Reveal(), words: redact.NewWords()}
	p.words.Hide(p.password)
	f := &faults{}
	p.readURL(c, f)
	p.readTLS(c, f)
	p.readTopics(c, f)
	p.readProtocol(c, f)
	p.readAccount(c, f)
	p.readTimes(c, f)
	return p, errors.Join(f.errs...)
}

// faults collects what is wrong, by key.
type faults struct{ errs []error }

func (f *faults) add(key, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
}

// ports are those that a URL leaves out.
func ports(scheme string) string {
	switch scheme {
	case "mqtt":
		return "1883"
	case "mqtts":
		return "8883"
	case "ws":
		return "80"
	case "wss":
		return "443"
	}
	return ""
}

// address is the host and port of a URL.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = ports(u.Scheme)
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (p *plan) readURL(c Config, f *faults) {
	u, err := url.Parse(c.URL) // its error would quote the URL, which may hold a password
	switch {
	case err != nil || u.Hostname() == "" || ports(u.Scheme) == "":
		f.add("url", "want mqtt://HOST, mqtts://HOST, ws://HOST/PATH or wss://HOST/PATH")
		return
	case u.User != nil:
		f.add("url", "name the account with username and password, not here")
		return
	case u.Fragment != "", !p.upgrades(u) && (strings.Trim(u.Path, "/") != "" || u.RawQuery != ""):
		f.add("url", "a broker's address ends with its port; topics stand in topics")
		return
	}
	p.words.Hide(redact.InURL(u)...)
	p.url, p.server = u, address(u)
}

// upgrades reports whether a URL is of a WebSocket.
func (p *plan) upgrades(u *url.URL) bool { return strings.HasPrefix(u.Scheme, "ws") }

func (p *plan) readTLS(c Config, f *faults) {
	if c.CAFile == "" && c.CertFile == "" && c.KeyFile == "" {
		return
	}
	if p.url != nil && !strings.HasSuffix(p.url.Scheme, "s") {
		f.add("url", "ca_file, cert_file and key_file need mqtts:// or wss://")
	}
	p.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		p.tls.RootCAs = authorities(c.CAFile, f)
	}
	switch {
	case (c.CertFile == "") != (c.KeyFile == ""):
		f.add("cert_file", "cert_file and key_file go together")
	case c.CertFile != "":
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			f.add("cert_file", "%w", err)
		}
		p.tls.Certificates = []tls.Certificate{pair}
	}
}

func authorities(file string, f *faults) *x509.CertPool {
	pem, err := os.ReadFile(file)
	if err != nil {
		f.add("ca_file", "%w", err)
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without certificates is no reason to distrust the file's
	}
	if !pool.AppendCertsFromPEM(pem) {
		f.add("ca_file", "%s holds no PEM certificate", file)
	}
	return pool
}

func (p *plan) readTopics(c Config, f *faults) {
	for i, topic := range c.Topics {
		key := fmt.Sprintf("topics[%d]", i)
		if err := checkFilter(topic); err != nil {
			f.add(key, "%w", err)
		}
		if slices.Contains(c.Topics[:i], topic) {
			f.add(key, "%q stands there twice", topic)
		}
	}
	if len(c.Topics) == 0 {
		f.add("topics", `name at least one, such as "devices/#"`)
	}
	if c.QoS < 0 || c.QoS > 2 {
		f.add("qos", "want 0, 1 or 2, not %d", c.QoS)
		return
	}
	p.qos = byte(c.QoS)
}

// checkFilter checks what may be subscribed to.
func checkFilter(filter string) error {
	if err := checkText(filter); err != nil {
		return err
	}
	rest := filter
	if shared, ok := strings.CutPrefix(filter, sharePrefix); ok {
		group, topic, _ := strings.Cut(shared, "/")
		if group == "" || topic == "" || strings.ContainsAny(group, "+#") {
			return errors.New("want $share/GROUP/TOPIC")
		}
		rest = topic
	}
	levels := strings.Split(rest, "/")
	for i, level := range levels {
		switch {
		case level == "+", level == "#" && i == len(levels)-1:
		case strings.ContainsAny(level, "+#"):
			return fmt.Errorf("%q: + and # each stand alone between slashes, and # only at the end", filter)
		}
	}
	return nil
}

const sharePrefix = "$share/"

// checkText checks what every string of the protocol must be.
func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxString:
		return fmt.Errorf("has %d bytes; the most is %d", len(s), maxString)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return errors.New("is no text: it holds a NUL, or is not UTF-8")
	}
	return nil
}

func (p *plan) readProtocol(c Config, f *faults) {
	switch c.Version {
	case version5:
		p.codec = v5{}
	case version311:
		p.codec = v311{}
	default:
		f.add("version", "want %q or %q, not %q", version5, version311, c.Version)
	}
	find, err := parseFinder(c.Dedupe)
	if err != nil {
		f.add("dedupe", "%w", err)
	}
	if _, ok := find.(property); ok && c.Version == version311 {
		f.add("dedupe", "version 3.1.1 has no user properties; use a JSON pointer such as /id")
	}
	p.id = find
}

func (p *plan) readAccount(c Config, f *faults) {
	for key, text := range map[string]string{"client_id": c.ClientID, "username": c.Username} {
		if text == "" {
			continue
		}
		if err := checkText(text); err != nil {
			f.add(key, "%w", err)
		}
	}
	if len(p.password) > maxString {
		f.add("password", "has more than %d bytes", maxString)
	}
	if p.password != "" && p.username == "" && c.Version == version311 {
		f.add("password", "version 3.1.1 has no password without a username")
	}
}

func (p *plan) readTimes(c Config, f *faults) {
	p.keepAlive = (c.KeepAlive.Std() + time.Second - 1).Truncate(time.Second)
	if p.keepAlive < minKeepAlive || p.keepAlive > maxKeepAlive {
		f.add("keep_alive", "want %s to %s, not %s: without it a dead connection is never noticed", minKeepAlive, maxKeepAlive, c.KeepAlive.Std())
	}
	seconds := (c.SessionExpiry.Std() + time.Second - 1) / time.Second
	p.expiry = uint32(min(int64(seconds), math.MaxUint32))
}
