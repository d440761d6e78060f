package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"leasehold/config"
)

const (
	// hostWithin bounds one look-up and one connection.
	hostWithin = 5 * time.Second
	// hostsAtOnce are looked at together: a firewall that drops takes the whole bound.
	hostsAtOnce = 16
)

// hostsOf are the addresses that the config leads to, each with who needs it.
func hostsOf(x *Patient) map[string]string {
	hosts := map[string]string{}
	note := func(address, who string) {
		if address != "" && hosts[address] == "" {
			hosts[address] = who
		}
	}
	for _, t := range x.Config.Targets {
		note(addressOf(t.URL), fmt.Sprintf("target %q", t.Name))
	}
	if !x.Config.Connect.Proxy.IsZero() { // the platforms are reached through it
		if text, err := x.Config.Connect.Proxy.Resolve(x.Resolve); err == nil {
			note(addressOf(text), "connect.proxy")
		}
		return hosts
	}
	for _, i := range x.Config.Installations {
		if !i.Enabled {
			continue
		}
		who := fmt.Sprintf("installation %q", i.ID)
		if spec, ok := x.Types.Lookup(i.Type); ok {
			for _, h := range spec.Hosts {
				note(h, who)
			}
		}
		note(addressOf(urlIn(i)), who)
	}
	return hosts
}

// urlIn is the key url of an installation's config, by whatever type; "" = none.
func urlIn(i config.Installation) string {
	var c struct {
		URL any `json:"url"`
	}
	if json.Unmarshal(i.Config, &c) != nil {
		return ""
	}
	text, _ := c.URL.(string) // a reference is a secret: left alone
	return text
}

// ports are those that a URL may leave out.
var ports = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "mqtt": "1883", "mqtts": "8883", "socks5": "1080"}

// addressOf is host:port of a URL; "" = it is none that names a host.
func addressOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = ports[u.Scheme]
	}
	if port == "" {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// checkHosts looks up every host and opens a connection to it.
func checkHosts(ctx context.Context, hosts map[string]string) []Finding {
	addresses := slices.Sorted(maps.Keys(hosts))
	all := make([]Finding, len(addresses))
	places := make(chan struct{}, hostsAtOnce)
	var wg sync.WaitGroup
	for n, address := range addresses {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			all[n] = checkHost(ctx, address, hosts[address])
		})
	}
	wg.Wait()
	if len(all) == 0 {
		return []Finding{{"hosts", OK, "the config names none", ""}}
	}
	return all
}

func checkHost(ctx context.Context, address, who string) Finding {
	ctx, cancel := context.WithTimeout(ctx, hostWithin)
	defer cancel()
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	var dns *net.DNSError
	switch {
	case err == nil:
		_ = conn.Close() // it was to be opened
		return Finding{"hosts", OK, fmt.Sprintf("%s answers in %v (%s)", address, time.Since(began).Round(time.Millisecond), who), ""}
	case errors.As(err, &dns):
		host, _, _ := net.SplitHostPort(address)
		return Finding{"hosts", Fail, fmt.Sprintf("%s is not known to DNS here (%s): %v", host, who, dns), "correct the name, or the DNS of this machine: /etc/resolv.conf, resolvectl status"}
	}
	return Finding{"hosts", Fail, fmt.Sprintf("%s cannot be reached (%s): %v", address, who, err), "let the firewall pass it, or correct the address; behind a proxy, set [connect] proxy"}
}
