package app

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
)

// proxyFor is the proxy of a channel's sockets; nil: there is none.
func (p *program) proxyFor(c config.Connect, resolve channel.Resolver) (func(*http.Request) (*url.URL, error), error) {
	if c.Proxy.IsZero() {
		return nil, nil
	}
	text, err := c.Proxy.Resolve(config.Resolver(resolve))
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "connect.proxy: %w", err)
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" && proxy.Scheme != "socks5" {
		return nil, fault.Errorf(fault.Invalid, "connect.proxy: must be a URL that begins with http://, https:// or socks5://")
	}
	if password, ok := proxy.User.Password(); ok { // errors quote it without the rest of the URL
		p.redact.Add(password)
	}
	return func(r *http.Request) (*url.URL, error) {
		if direct(r.URL.Hostname(), c.NoProxy) {
			return nil, nil
		}
		return proxy, nil
	}, nil
}

// direct reports whether host is dialled without the proxy: an entry of the list
// is a host, a domain with its subdomains (".example.org"), an address or a CIDR.
func direct(host string, list []string) bool {
	addr, _ := netip.ParseAddr(host) // the zero Addr is in no prefix
	for _, entry := range list {
		switch {
		case strings.EqualFold(entry, host):
			return true
		case strings.HasPrefix(entry, "."):
			if h, e := strings.ToLower(host), strings.ToLower(entry); strings.HasSuffix(h, e) || h == e[1:] {
				return true
			}
		default:
			if prefix, err := netip.ParsePrefix(entry); err == nil && prefix.Contains(addr.Unmap()) {
				return true
			}
		}
	}
	return false
}

// authorities are the certificates to trust: the system's and those of file. nil,
// without a file: the system's, which are then read at the first TLS dial and not
// at the start.
func authorities(file config.Path) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(string(file))
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "connect.ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fault.Errorf(fault.Invalid, "connect.ca_file: %s holds no PEM certificate", file)
	}
	return pool, nil
}
