package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"leasehold/internal/child"
	"leasehold/internal/secretname"
	"leasehold/internal/unixurl"
	"leasehold/internal/wording"
)

// denied checks ranges of addresses.
func (v *validator) denied(ranges []string, s spot) {
	for i, text := range ranges {
		if _, err := netip.ParsePrefix(text); err != nil {
			v.fail(v.narrow(s, i), "must be a range of addresses", `such as "169.254.0.0/16", or "10.1.2.3/32" for one`)
		}
	}
}

// target checks what depends on the target's type.
func (v *validator) target(t *Target, s spot) {
	for i, event := range t.Events {
		if event == "" || strings.ContainsAny(event, " \t,") || strings.Contains(strings.TrimSuffix(event, "*"), "*") {
			v.fail(v.narrow(s.key("events"), i), `must be an event type such as "message", a family such as "message.*", or "*"`, "")
		}
	}
	for i, kind := range t.Kinds {
		if kind == "" || strings.ContainsAny(kind, " \t,*") {
			v.fail(v.narrow(s.key("kinds"), i), `must be a kind of conversation, such as "direct"`, "")
		}
	}
	v.match(t.Match, s.key("match"))
	switch t.Type {
	case "http":
		v.httpURL(t.URL, s.key("url"))
		v.headers(t.Headers, s.key("headers"))
		switch {
		case t.ClientCert != "" && t.ClientKey.Kind == "" && !v.bad[s.key("client_key").path]:
			v.fail(s.key("client_cert"), "needs its key", `write client_key = { file = "PATH" }`)
		case t.ClientCert == "" && t.ClientKey.Kind != "":
			v.fail(s.key("client_key"), "needs its certificate", `write client_cert = "PATH"`)
		}
	case "command":
		v.command(t, s)
	case "message":
		v.message(t, s)
	}
	v.alien(t, s)
}

// alien refuses the keys that are of another type of target.
func (v *validator) alien(t *Target, s spot) {
	for _, k := range []struct {
		key, typ string
		set      bool
	}{
		{"url", "http", t.URL != ""},
		{"signing_keys", "http", len(t.SigningKeys) > 0},
		{"headers", "http", len(t.Headers) > 0},
		{"ca_file", "http", t.CAFile != ""},
		{"batch", "http", t.Batch > 1},
		{"gzip", "http", t.Gzip},
		{"client_cert", "http", t.ClientCert != ""},
		{"client_key", "http", t.ClientKey.Kind != ""},
		{"command", "command", t.Command != nil},
		{"env", "command", len(t.Env) > 0},
		{"installation", "message", t.Installation != ""},
		{"conversation", "message", t.Conversation != ""},
		{"thread", "message", t.Thread != ""},
		{"text", "message", t.Text != ""},
	} {
		if k.set && t.Type != k.typ && t.Type != "" {
			v.fail(s.key(k.key), fmt.Sprintf("does not go with type = %q", t.Type), "remove it")
		}
	}
}

// message checks what is sent, and that it says where to. Whether its installation
// is there is for names to say.
func (v *validator) message(t *Target, s spot) {
	if t.Installation == "" {
		v.absent(s.key("installation"))
	}
	if t.Conversation == "" {
		v.absent(s.key("conversation"))
	}
	if _, err := wording.Parse(t.Text); err != nil {
		v.fail(s.key("text"), err.Error(), unknownField(t.Text, err))
	}
}

// unknownField is for a field that is nearly one of those that there are.
func unknownField(text string, err error) string {
	for _, m := range braced.FindAllStringSubmatch(text, -1) {
		if name, ok := closest(m[1], wording.Names()); ok && strings.Contains(err.Error(), "{"+m[1]+"}") {
			return fmt.Sprintf("did you mean {%s}?", name)
		}
	}
	return ""
}

var braced = regexp.MustCompile(`\{\s*([^{}\s]+)\s*\}`)

// command checks a program and its environment. It does not look whether the
// program is there: it may come later.
func (v *validator) command(t *Target, s spot) {
	at := s.key("command")
	if t.Command == nil {
		v.absent(at)
	} else if err := child.Check(t.Command); err != nil {
		v.fail(at, err.Error(), "")
	} else if i, found := secretname.InArguments(t.Command); found {
		v.fail(at.item(i), `a literal secret is refused: everybody on the machine can read it; write env = { NAME = { file = "PATH" } } and let the program take it from there`, "")
	}
	for _, name := range sortedKeys(t.Env) {
		switch err := child.CheckVariable(name, t.Env[name].Literal); {
		case err != nil:
			v.fail(s.key("env").key(name), err.Error(), "")
		case strings.HasPrefix(strings.ToUpper(name), prefix):
			v.fail(s.key("env").key(name), "names beginning with "+prefix+" are Leasehold's own", "")
		}
	}
}

func (v *validator) httpURL(text string, s spot) {
	if text == "" {
		v.absent(s)
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		v.fail(s, "is not a URL", `such as "http://127.0.0.1:3000/events"`)
	case u.Scheme == unixurl.Scheme:
		if _, _, err := unixurl.Split(u); err != nil {
			v.fail(s, err.Error(), "")
		} else if u.User != nil {
			v.fail(s, "a socket takes no user and password", "")
		}
	case u.Scheme != "http" && u.Scheme != "https":
		v.fail(s, "must begin with http:// or https://", `such as "http://127.0.0.1:3000/events"`)
	case u.Hostname() == "":
		v.fail(s, "has no host", `such as "http://127.0.0.1:3000/events"`)
	case badPort(u):
		v.fail(s, "has a port that is not between 1 and 65535", "")
	case u.User != nil:
		v.fail(s, `a literal secret is refused; take user and password out of the URL and write headers = { Authorization = { file = "PATH" } }`, "")
	}
}

// badPort reports a port that no address has. url.Parse only wants digits.
func badPort(u *url.URL) bool {
	if u.Port() == "" {
		return false
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err != nil || n == 0
}

// headerName is the form of a header's name (RFC 9110, section 5.6.2).
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// headers refuses what no HTTP request can carry: each delivery would fail with it.
func (v *validator) headers(all map[string]Value, s spot) {
	for _, name := range sortedKeys(all) {
		if !headerName.MatchString(name) {
			v.fail(s.key(name), "is not the name of a header", `such as "X-Team"`)
		}
		if strings.ContainsFunc(all[name].Literal, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			v.fail(s.key(name), "must not contain line ends or other control characters", "")
		}
	}
}
