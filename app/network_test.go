package app

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/redact"
)

func TestProxy(t *testing.T) {
	p := &program{redact: redact.New()}
	t.Run("hosts, domains, addresses and networks are dialled directly", func(t *testing.T) {
		list := []string{"localhost", ".Example.org", "10.0.0.0/8", "192.0.2.7", "fd00::/8"}
		for host, want := range map[string]bool{
			"localhost": true, "LOCALHOST": true, "example.org": true, "a.b.example.ORG": true, "10.1.2.3": true, "::ffff:10.1.2.3": true,
			"192.0.2.7": true, "fd12::1": true,
			"notexample.org": false, "example.com": false, "11.0.0.1": false, "192.0.2.8": false, "localhost.example.com": false, "": false,
		} {
			if got := direct(host, list); got != want {
				t.Errorf("direct(%q): got %v, want %v", host, got, want)
			}
		}
	})

	t.Run("everything else goes through the proxy, whose password comes by reference", func(t *testing.T) {
		c := config.Connect{Proxy: config.Value{Reference: config.Reference{Kind: "env", Name: "P"}}, NoProxy: []string{"localhost"}}
		proxy, err := p.proxyFor(c, func(string, string) (string, error) { return "http://u:p@proxy.example.org:3128", nil })
		if err != nil {
			t.Fatal(err)
		}
		for url, want := range map[string]string{"https://example.com/x": "http://u:p@proxy.example.org:3128", "http://localhost:80/": "<nil>"} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			u, err := proxy(r)
			got := "<nil>"
			if u != nil {
				got = u.String()
			}
			if err != nil || got != want {
				t.Errorf("proxy of %s: got %s, %v, want %s", url, got, err, want)
			}
		}
	})

	t.Run("a proxy that does not resolve or is no URL is an invalid config, and its text is not repeated", func(t *testing.T) {
		c := config.Connect{Proxy: config.Value{Reference: config.Reference{Kind: "env", Name: "P"}}}
		_, err := p.proxyFor(c, func(string, string) (string, error) { return "", errors.New("P is not set") })
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "connect.proxy: P is not set") {
			t.Errorf("got %v, want fault.Invalid that names the key and the variable", err)
		}
		_, err = p.proxyFor(c, func(string, string) (string, error) { return "ftp://u:hunter2@x", nil })
		if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v, want fault.Invalid without the value", err)
		}
	})

	t.Run("no proxy is none", func(t *testing.T) {
		if proxy, err := p.proxyFor(config.Connect{}, nil); proxy != nil || err != nil {
			t.Errorf("got a proxy or %v, want neither", err)
		}
	})
}

func TestAuthorities(t *testing.T) {
	t.Run("a file without a certificate is refused by its key", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, file + ".missing"} {
			if _, err := authorities(config.Path(path)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "connect.ca_file") {
				t.Errorf("%s: got %v, want fault.Invalid that names connect.ca_file", path, err)
			}
		}
	})

	t.Run("without a file the system's are left to the first dial", func(t *testing.T) {
		if pool, err := authorities(""); pool != nil || err != nil {
			t.Errorf("got %v, %v, want nil", pool, err)
		}
	})
}
