package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"leasehold/internal/redact"
)

const (
	binaryAccept = "accept"
	binaryRefuse = "refuse"

	// readLimit bounds one message, whatever max_size says: past it the connection
	// ends, because nothing but reading on would tell where the message stops.
	readLimit = 16 << 20

	minPingEvery = time.Second
)

// plan is a Config with its templates and pointers parsed: all that a term needs,
// checked.
type plan struct {
	url         *template
	place       string // host and path as configured: the stream that a cursor belongs to
	header      http.Header
	host        string // the Host header, where one is configured
	subprotocol []string
	secrets     map[string]string

	login, resume, ack, ping *template // nil = none
	subscribe                []*template
	subscribeWhen, readyWhen *match // nil = none
	authErrorWhen            []*match
	ignoreWhen               []*match
	authCodes                []int

	pointers     pointers
	resumes      bool // a cursor is of use
	refuseBinary bool
	maxSize      int
	wsPing       bool
	pingEvery    time.Duration
	deadAfter    time.Duration

	redact *redact.Redactor // of what the platform says
	hidden []string         // what it knows
}

// pointers are the parsed ones; nil = not configured.
type pointers struct {
	id, cursor, kind, time, conversation, thread, sender, text pointer
}

// newPlan checks a config and reports every fault of it by its key.
func newPlan(c Config) (*plan, error) {
	p := &plan{
		header: http.Header{}, secrets: map[string]string{}, authCodes: c.AuthCodes, refuseBinary: c.Binary == binaryRefuse, maxSize: c.MaxSize,
		wsPing: c.WSPing, pingEvery: c.PingEvery.Std(), deadAfter: c.DeadAfter.Std(), redact: redact.New(),
	}
	if c.Subprotocol != "" {
		p.subprotocol = []string{c.Subprotocol}
	}
	f := &faults{}
	p.readSecrets(c, f)
	p.readPointers(c, f)
	p.readURL(c, f)
	p.readHeaders(c, f)
	p.readFrames(c, f)
	p.readConditions(c, f)
	p.readLimits(c, f)
	return p, errors.Join(f.errs...)
}

// faults collects what is wrong, by key.
type faults struct{ errs []error }

func (f *faults) add(key, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
}

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (p *plan) readSecrets(c Config, f *faults) {
	for name, s := range c.Secrets {
		if !secretName.MatchString(name) || name == nameID || name == nameCursor {
			f.add("secrets."+name, "a secret's name is letters, digits and _, and neither id nor cursor")
		}
		p.secrets[name] = s.Reveal()
		p.hide(s.Reveal())
	}
}

// names are the placeholders that a template may use beside more.
func (p *plan) names(more ...string) []string {
	all := more
	for name := range p.secrets {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

func (p *plan) readPointers(c Config, f *faults) {
	for key, to := range map[string]struct {
		text string
		p    *pointer
	}{
		"id": {c.Pointers.ID, &p.pointers.id}, "cursor": {c.Pointers.Cursor, &p.pointers.cursor},
		"type": {c.Pointers.Type, &p.pointers.kind}, "time": {c.Pointers.Time, &p.pointers.time},
		"conversation": {c.Pointers.Conversation, &p.pointers.conversation}, "thread": {c.Pointers.Thread, &p.pointers.thread},
		"sender": {c.Pointers.Sender, &p.pointers.sender}, "text": {c.Pointers.Text, &p.pointers.text},
	} {
		if to.text == "" {
			continue
		}
		parsed, err := parsePointer(to.text)
		if err != nil {
			f.add("pointers."+key, "%w", err)
		}
		*to.p = parsed
	}
	if p.pointers.cursor == nil {
		p.pointers.cursor = p.pointers.id
	}
}

func (p *plan) readURL(c Config, f *faults) {
	t, err := parseURL(c.URL, p.names(nameCursor))
	if err != nil {
		f.add("url", "%w", err)
		return
	}
	p.url = t
	rendered, _ := t.render(values{secrets: p.secrets})
	u, err := url.Parse(string(rendered)) // its error would quote the URL, and a secret with it
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" {
		f.add("url", "want ws://HOST/PATH or wss://HOST/PATH")
		return
	}
	if u.Fragment != "" {
		f.add("url", "a WebSocket address has no fragment; write # as %%23")
	}
	p.place, _, _ = strings.Cut(c.URL, "?")
	if _, after, ok := strings.Cut(p.place, "@"); ok {
		p.place = after
	}
	_, after, ok := strings.Cut(p.place, "://")
	if ok {
		p.place = after
	}
	if u.User != nil {
		password, _ := u.User.Password()
		p.hide(password)
		p.hide(u.User.Username())
	}
	for key, all := range u.Query() {
		for _, v := range all {
			if len(v) >= 16 || secretKey.MatchString(key) { // 16: shorter ones without such a name are words
				p.hide(v)
			}
		}
	}
}

var secretKey = regexp.MustCompile(`(?i)token|key|secret|pass|auth|sig|ticket`)

func (p *plan) readHeaders(c Config, f *faults) {
	for name, text := range c.Headers {
		t, err := parsePieces(text.Reveal(), p.names(), false)
		if err != nil { // its text might quote a secret
			f.add("headers."+name, "{{NAME}} in it must be one of secrets")
			continue
		}
		rendered, _ := t.render(values{secrets: p.secrets})
		value := string(rendered)
		switch canonical := http.CanonicalHeaderKey(name); {
		case !headerName.MatchString(name):
			f.add("headers", "%q is not a header's name", name)
		case strings.ContainsFunc(text.Reveal(), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			f.add("headers."+name, "a header holds no control characters; look for a line end in the secret's file")
		case canonical == "Connection", canonical == "Upgrade", strings.HasPrefix(canonical, "Sec-Websocket-"):
			f.add("headers."+name, "the handshake sets it; use subprotocol for Sec-WebSocket-Protocol")
		case canonical == "Host":
			p.host = value
		default:
			p.header.Set(name, value)
		}
		for _, secret := range headerSecrets(value) {
			p.hide(secret)
		}
	}
}

var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

func (p *plan) readFrames(c Config, f *faults) {
	frame := func(key, text string, pointers bool, more ...string) *template {
		if text == "" {
			return nil
		}
		t, err := parseTemplate(text, p.names(more...), pointers)
		if err != nil {
			f.add(key, "%w", err)
			return nil
		}
		return t
	}
	p.login = frame("login", c.Login.Reveal(), false)
	p.resume = frame("resume", c.Resume, false, nameCursor)
	p.ack = frame("ack", c.Ack, true, nameID, nameCursor)
	p.ping = frame("ping", c.Ping, false)
	for i, text := range c.Subscribe {
		if t := frame(fmt.Sprintf("subscribe[%d]", i), text, false, nameCursor); t != nil {
			p.subscribe = append(p.subscribe, t)
		}
	}
	for _, secret := range jsonStrings(c.Login.Reveal()) {
		p.hide(secret)
	}
	if p.ack.uses(nameID) && p.pointers.id == nil {
		f.add("ack", "{{id}} needs pointers.id")
	}
	wants := slices.ContainsFunc(append([]*template{p.url, p.resume, p.ack}, p.subscribe...), func(t *template) bool {
		return t.uses(nameCursor)
	})
	p.resumes = wants
	if wants && p.pointers.cursor == nil {
		f.add("pointers", "{{cursor}} needs pointers.cursor or pointers.id")
	}
	if p.resume != nil && !p.resume.uses(nameCursor) {
		f.add("resume", "without {{cursor}} it cannot say where to go on; put a frame that is always sent into subscribe")
	}
}

func (p *plan) readConditions(c Config, f *faults) {
	p.subscribeWhen = f.match("subscribe_when", c.SubscribeWhen)
	p.readyWhen = f.match("ready_when", c.ReadyWhen)
	for i, m := range c.AuthErrorWhen {
		p.authErrorWhen = append(p.authErrorWhen, f.listed("auth_error_when", i, m))
	}
	for i, m := range c.IgnoreWhen {
		p.ignoreWhen = append(p.ignoreWhen, f.listed("ignore_when", i, m))
	}
	for _, code := range c.AuthCodes {
		if code < 1000 || code > 4999 {
			f.add("auth_codes", "a close code is 1000 to 4999, not %d", code)
		}
	}
}

func (p *plan) readLimits(c Config, f *faults) {
	if c.Binary != binaryAccept && c.Binary != binaryRefuse {
		f.add("binary", "want accept or refuse, not %q", c.Binary)
	}
	if c.MaxSize < 1 || c.MaxSize > readLimit {
		f.add("max_size", "want 1 to %d bytes, not %d", readLimit, c.MaxSize)
	}
	if p.pingEvery < minPingEvery {
		f.add("ping_every", "want at least %s, not %s; ws_ping = false turns WebSocket pings off", minPingEvery, p.pingEvery)
	}
	pings := p.wsPing || p.ping != nil
	switch {
	case p.deadAfter == 0 && !pings:
		f.add("dead_after", "with ws_ping = false and no ping nothing proves that the connection lives; set ping, or dead_after to the longest silence the server keeps")
	case p.deadAfter == 0:
		p.deadAfter = deadAfter
		if p.pingEvery > deadAfter*2/5 { // one ping may be lost, as with the defaults
			p.deadAfter = p.pingEvery * 5 / 2
		}
	case pings && p.deadAfter < 2*p.pingEvery:
		f.add("dead_after", "want at least twice ping_every (%s), not %s: one late answer must not end a healthy connection", p.pingEvery, p.deadAfter)
	case p.deadAfter < 2*minPingEvery:
		f.add("dead_after", "want at least %s, not %s", 2*minPingEvery, p.deadAfter)
	}
}
