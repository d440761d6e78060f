// Package handshake is the HTTP request that opens a stream: an address and headers
// made of configuration, and what a server's refusal says.
//
// Whatever in them may be a secret is registered with the installation's Words, so
// that no refusal repeats it. What a refusal means is for the channel type to say.
package handshake

import (
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"leasehold/internal/jsonframe"
	"leasehold/internal/redact"
)

// Parts makes the parts of a request. Every fault is told by its key.
type Parts struct {
	secrets map[string]string
	words   *redact.Words
	fault   func(key, format string, args ...any)
}

// New makes Parts that fill in secrets by their names, and hide them.
func New(secrets map[string]string, words *redact.Words, fault func(key, format string, args ...any)) *Parts {
	for name, value := range secrets {
		if !secretName.MatchString(name) || name == jsonframe.NameID || name == jsonframe.NameCursor {
			fault("secrets."+name, "a secret's name is letters, digits and _, and neither id nor cursor")
		}
		words.Hide(value)
	}
	return &Parts{secrets, words, fault}
}

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Names are the placeholders that a template may use: the secrets and more.
func (p *Parts) Names(more ...string) []string {
	all := more
	for name := range p.secrets {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

// Address reads the URL of a kind of server, of one of two schemes, which may hold
// secrets and the cursor. place is its host and path as configured, without the
// user: the stream that a cursor belongs to. A nil template is one with a fault.
func (p *Parts) Address(text, kind, scheme, secure string) (t *jsonframe.Template, place string) {
	t, err := jsonframe.ParseURL(text, p.Names(jsonframe.NameCursor))
	if err != nil {
		p.fault("url", "%w", err)
		return nil, ""
	}
	rendered, _ := t.Render(jsonframe.Values{Secrets: p.secrets})
	u, err := url.Parse(string(rendered)) // its error would quote the URL, and a secret with it
	if err != nil || u.Scheme != scheme && u.Scheme != secure || u.Hostname() == "" {
		p.fault("url", "want %s://HOST/PATH or %s://HOST/PATH", scheme, secure)
		return nil, ""
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			p.fault("url", "want a port between 1 and 65535")
		}
	}
	if u.Fragment != "" {
		p.fault("url", "%s address has no fragment; write # as %%23", kind)
	}
	place, _, _ = strings.Cut(text, "?")
	for _, sign := range []string{"@", "://"} {
		if _, after, ok := strings.Cut(place, sign); ok {
			place = after
		}
	}
	p.words.Hide(redact.InURL(u)...)
	return t, place
}

// Headers reads headers that may hold secrets. taken says who sets a header, by its
// canonical name, when the configuration may not; "" = nobody. host is the Host
// header, where one is configured.
func (p *Parts) Headers(texts map[string]string, taken func(name string) string) (header http.Header, host string) {
	header = http.Header{}
	for name, text := range texts {
		t, err := jsonframe.ParseText(text, p.Names())
		if err != nil { // its text might quote a secret
			p.fault("headers."+name, "{{NAME}} in it must be one of secrets")
			continue
		}
		rendered, _ := t.Render(jsonframe.Values{Secrets: p.secrets})
		value := string(rendered)
		switch canonical := http.CanonicalHeaderKey(name); {
		case !headerName.MatchString(name):
			p.fault("headers", "%q is not a header's name", name)
		case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			p.fault("headers."+name, "a header holds no control characters; look for a line end in the secret's file")
		case taken(canonical) != "":
			p.fault("headers."+name, "%s", taken(canonical))
		case canonical == "Host":
			host = value
		default:
			header.Set(name, value)
		}
		p.words.Hide(redact.InHeader(value)...)
	}
	return header, host
}

var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// Identity is the host of an address with the account that the user names. Without
// an account none is known: two installations with one URL and different headers
// are two accounts, and the headers are secrets of which not even a hash is kept.
func Identity(address, account string) string {
	if account == "" {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host) + "/" + account
}
