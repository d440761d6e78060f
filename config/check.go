package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
)

// What no tag can say: how keys depend on each other.

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// names checks that ids and target names are unique and that what refers to one
// finds it.
func (v *validator) names(c *Config) {
	targets, certain := map[string]string{}, !v.partial
	for i, t := range c.Targets {
		s := elementSpot("target", t.Name, i)
		certain = v.define(targets, t.Name, s.key("name"), t.Pos) && certain
	}
	carriers := map[string]*Installation{}
	ids, allIDs := map[string]string{}, !v.partial
	for i := range c.Installations {
		inst := &c.Installations[i]
		s := elementSpot("installation", inst.ID, i)
		allIDs = v.define(ids, inst.ID, s.key("id"), inst.Pos) && allIDs
		carriers[inst.ID] = inst
	}
	if certain {
		known := sortedKeys(targets)
		v.refer(c.Delivery.Targets, known, spot{}.key("delivery").key("targets"))
		for i, inst := range c.Installations {
			v.refer(inst.Targets, known, elementSpot("installation", inst.ID, i).key("targets"))
		}
	}
	if allIDs {
		for i, t := range c.Targets {
			if t.Type == "message" && t.Installation != "" && carriers[t.Installation] == nil {
				v.fail(elementSpot("target", t.Name, i).key("installation"), fmt.Sprintf("installation %s is not defined", quote(t.Installation)), near(t.Installation, carriers))
			}
		}
	}
	for i, inst := range c.Installations {
		if inst.Via != "" {
			v.via(inst, carriers, allIDs, elementSpot("installation", inst.ID, i).key("via"))
		}
	}
}

// define notes a name and where it is defined. false: there is none to refer to.
func (v *validator) define(defined map[string]string, name string, s spot, pos Pos) bool {
	if name == "" {
		return false
	}
	if !nameForm.MatchString(name) {
		v.fail(s, `must be letters, digits, ".", "_" and "-", beginning with a letter or digit, at most 128`, "")
	}
	if first, twice := defined[name]; twice {
		message := "is defined twice"
		if first != "" {
			message += ", first at " + first
		}
		v.fail(s, message, "")
		return true
	}
	defined[name] = pos.String()
	return true
}

// refer checks that each of a list of targets exists.
func (v *validator) refer(names, known []string, s spot) {
	for i, name := range names {
		if !slices.Contains(known, name) {
			hint := either(name, known)
			if len(known) == 0 {
				hint = "there is no [[target]]"
			}
			v.fail(v.narrow(s, i), fmt.Sprintf("target %s is not defined", quote(name)), hint)
		}
	}
}

// narrow is the item of a list, when its own position is known: one variable
// holds a whole list, and so does code.
func (v *validator) narrow(list spot, i int) spot {
	item := list.item(i)
	if v.where[list.path].File == environment {
		return list
	}
	return item
}

// via checks a rider: it rides on an installation with a connection of its own.
func (v *validator) via(inst Installation, all map[string]*Installation, certain bool, s spot) {
	carrier, ok := all[inst.Via]
	switch {
	case inst.Via == inst.ID:
		v.fail(s, "an installation cannot ride on itself", "")
	case !ok && certain:
		v.fail(s, fmt.Sprintf("installation %s is not defined", quote(inst.Via)), near(inst.Via, all))
	case !ok:
	case carrier.Via != "":
		v.fail(s, fmt.Sprintf("installation %s has no connection of its own: it rides on %s", quote(inst.Via), quote(carrier.Via)),
			fmt.Sprintf("write via = %s", quote(carrier.Via)))
	case inst.Type != "" && carrier.Type != "" && carrier.Type != inst.Type:
		v.fail(s, fmt.Sprintf("installation %s is of another type, %s", quote(inst.Via), quote(carrier.Type)), "")
	}
}

func near(id string, all map[string]*Installation) string {
	name, ok := closest(id, sortedKeys(all))
	if !ok {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", name)
}

// lease refuses numbers under which two nodes could run one installation. The
// fault stands at the first of the keys that was set.
func (v *validator) lease(l Lease) {
	table := spot{}.key("lease")
	at := table
	for _, key := range []string{"margin", "attempt_timeout", "renew_every", "ttl"} {
		path := table.key(key).path
		if v.bad[path] {
			return
		}
		if _, set := v.where[path]; set {
			at.path = path
		}
	}
	if message, hint := l.unsafe(); message != "" {
		v.fail(at, message, hint)
	}
}

func (v *validator) connect(c Connect) {
	if c.Proxy.Kind != "" || c.Proxy.Literal == "" {
		return
	}
	s := spot{}.key("connect").key("proxy")
	u, err := url.Parse(c.Proxy.Literal)
	switch {
	case err != nil || u.Host == "":
		v.fail(s, "must be a URL", `such as "http://proxy.example.org:3128"`)
	case !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		v.fail(s, "must begin with http://, https:// or socks5://", "")
	case u.User != nil:
		v.fail(s, `a literal secret is refused; put the whole URL in a file and write proxy = { file = "PATH" }, or { env = "HTTPS_PROXY" }`, "")
	}
}

// admin refuses to show tokens on a network: what is not on the loopback needs TLS.
func (v *validator) admin(a Admin) {
	table := spot{}.key("admin")
	switch {
	case a.TLSCert != "" && a.TLSKey == "":
		v.fail(table.key("tls_cert"), "needs its key", `write tls_key = "PATH"`)
	case a.TLSCert == "" && a.TLSKey != "":
		v.fail(table.key("tls_key"), "needs its certificate", `write tls_cert = "PATH"`)
	}
	for i, address := range a.Listen {
		host, port, err := net.SplitHostPort(address)
		at := v.narrow(table.key("listen"), i)
		_, portErr := strconv.ParseUint(port, 10, 16)
		addr, addrErr := netip.ParseAddr(host)
		switch {
		case err != nil || portErr != nil:
			v.fail(at, "must be HOST:PORT", `such as "127.0.0.1:8470"`)
		case a.TLSCert == "" && host != "localhost" && (addrErr != nil || !addr.IsLoopback()):
			v.fail(at, "is not on the loopback, where tokens would be seen on the way", "write tls_cert and tls_key, or listen on 127.0.0.1")
		}
	}
}

func (v *validator) health(h Health) {
	if h.PingURL.Kind != "" || h.PingURL.Literal == "" {
		return
	}
	const example = `such as "https://hc.example.org/ping/ID"`
	s := spot{}.key("health").key("ping_url")
	u, err := url.Parse(h.PingURL.Literal)
	switch {
	case err != nil || u.Hostname() == "":
		v.fail(s, "must be a URL", example)
	case u.Scheme != "http" && u.Scheme != "https":
		v.fail(s, "must begin with http:// or https://", example)
	case u.User != nil:
		v.fail(s, `a literal secret is refused; put the whole URL in a file and write ping_url = { file = "PATH" }`, "")
	}
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
