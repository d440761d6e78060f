package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
	"leasehold/internal/markup"
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
	url         *jsonframe.Template
	place       string // host and path as configured: the stream that a cursor belongs to
	header      http.Header
	host        string // the Host header, where one is configured
	subprotocol []string
	secrets     map[string]string

	login, resume, ack, ping *jsonframe.Template // nil = none
	subscribe                []*jsonframe.Template
	subscribeWhen, readyWhen *match // nil = none
	authErrorWhen            []*match
	ignoreWhen               []*match
	authCodes                []int

	messages map[string]*jsonframe.Template // by op; one that is not there cannot be done
	answer   answer

	interaction interaction

	layout       jsonframe.Layout
	resumes      bool // a cursor is of use
	refuseBinary bool
	maxSize      int
	wsPing       bool
	pingEvery    time.Duration
	deadAfter    time.Duration

	words *redact.Words // of the platform
}

// newPlan checks a config and reports every fault of it by its key.
func newPlan(c Config) (*plan, error) {
	p := &plan{
		secrets: map[string]string{}, authCodes: c.AuthCodes, refuseBinary: c.Binary == binaryRefuse, maxSize: c.MaxSize,
		wsPing: c.WSPing, pingEvery: c.PingEvery.Std(), deadAfter: c.DeadAfter.Std(), words: redact.NewWords(),
	}
	if c.Subprotocol != "" {
		p.subprotocol = []string{c.Subprotocol}
	}
	for name, s := range c.Secrets {
		p.secrets[name] = s.Reveal()
	}
	f := &faults{}
	parts := handshake.New(p.secrets, p.words, f.add)
	p.readHandshake(c, parts)
	p.readPointers(c, f)
	p.readFrames(c, parts, f)
	p.readConditions(c, f)
	p.readMessages(c, parts, f)
	p.readInteraction(c, parts, f)
	p.readLimits(c, f)
	return p, errors.Join(f.errs...)
}

// faults collects what is wrong, by key.
type faults struct{ errs []error }

func (f *faults) add(key, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
}

// template parses a frame; nil when it is empty or has a fault.
func (f *faults) template(key, text string, names []string, pointers bool) *jsonframe.Template {
	if text == "" {
		return nil
	}
	t, err := jsonframe.ParseTemplate(text, names, pointers)
	if err != nil {
		f.add(key, "%w", err)
		return nil
	}
	return t
}

// pointer parses a pointer; nil when it is empty.
func (f *faults) pointer(key, text string) jsonframe.Pointer {
	if text == "" {
		return nil
	}
	p, err := jsonframe.ParsePointer(text)
	if err != nil {
		f.add(key, "%w", err)
	}
	return p
}

func (p *plan) readHandshake(c Config, parts *handshake.Parts) {
	p.url, p.place = parts.Address(c.URL, "a WebSocket", "ws", "wss")
	texts := map[string]string{}
	for name, text := range c.Headers {
		texts[name] = text.Reveal()
	}
	p.header, p.host = parts.Headers(texts, func(name string) string {
		if name == "Connection" || name == "Upgrade" || strings.HasPrefix(name, "Sec-Websocket-") {
			return "the handshake sets it; use subprotocol for Sec-WebSocket-Protocol"
		}
		return ""
	})
}

func (p *plan) readPointers(c Config, f *faults) {
	x := c.Pointers
	p.layout = jsonframe.ParseLayout(map[string]string{
		"id": x.ID, "cursor": x.Cursor, "type": x.Type, "time": x.Time, "conversation": x.Conversation, "thread": x.Thread, "sender": x.Sender, "text": x.Text,
	}, func(key, format string, args ...any) { f.add("pointers."+key, format, args...) })
	if p.layout.Cursor == nil {
		p.layout.Cursor = p.layout.ID
	}
}

func (p *plan) readFrames(c Config, parts *handshake.Parts, f *faults) {
	frame := func(key, text string, pointers bool, more ...string) *jsonframe.Template {
		return f.template(key, text, parts.Names(more...), pointers)
	}
	p.login = frame("login", c.Login.Reveal(), false)
	p.resume = frame("resume", c.Resume, false, jsonframe.NameCursor)
	p.ack = frame("ack", c.Ack, true, jsonframe.NameID, jsonframe.NameCursor)
	p.ping = frame("ping", c.Ping, false)
	for i, text := range c.Subscribe {
		if t := frame(fmt.Sprintf("subscribe[%d]", i), text, false, jsonframe.NameCursor); t != nil {
			p.subscribe = append(p.subscribe, t)
		}
	}
	p.words.Hide(redact.InFrame(c.Login.Reveal())...)
	if p.ack.Uses(jsonframe.NameID) && p.layout.ID == nil {
		f.add("ack", "{{id}} needs pointers.id")
	}
	wants := slices.ContainsFunc(append([]*jsonframe.Template{p.url, p.resume, p.ack}, p.subscribe...), func(t *jsonframe.Template) bool {
		return t.Uses(jsonframe.NameCursor)
	})
	p.resumes = wants
	if wants && p.layout.Cursor == nil {
		f.add("pointers", "{{cursor}} needs pointers.cursor or pointers.id")
	}
	if p.resume != nil && !p.resume.Uses(jsonframe.NameCursor) {
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

// pings tells whether a ping of either kind is sent.
func (p *plan) pings() bool { return p.wsPing || p.ping != nil }

func (p *plan) readLimits(c Config, f *faults) {
	if c.Binary != binaryAccept && c.Binary != binaryRefuse {
		f.add("binary", "want accept or refuse, not %q", c.Binary)
	}
	if c.MaxSize < 1 || c.MaxSize > readLimit {
		f.add("max_size", "want 1 to %d bytes, not %d", readLimit, c.MaxSize)
	}
	for _, k := range []struct {
		key string
		err error
	}{
		{"markup", markup.CheckFlavour(c.Markup)},
		{"text_limit", markup.CheckLimit(c.TextLimit)},
		{"text_unit", markup.CheckUnit(c.TextUnit)},
	} {
		if k.err != nil {
			f.add(k.key, "%w", k.err)
		}
	}
	if p.pingEvery < minPingEvery {
		f.add("ping_every", "want at least %s, not %s; ws_ping = false turns WebSocket pings off", minPingEvery, p.pingEvery)
	}
	switch {
	case p.deadAfter == 0 && !p.pings():
		f.add("dead_after", "with ws_ping = false and no ping nothing proves that the connection lives; set ping, or dead_after to the longest silence the server keeps")
	case p.deadAfter == 0:
		p.deadAfter = deadAfter
		if p.pingEvery > deadAfter*2/5 { // one ping may be lost, as with the defaults
			p.deadAfter = p.pingEvery * 5 / 2
		}
	case p.pings() && p.deadAfter < 2*p.pingEvery:
		f.add("dead_after", "want at least twice ping_every (%s), not %s: one late answer must not end a healthy connection", p.pingEvery, p.deadAfter)
	case p.deadAfter < 2*minPingEvery:
		f.add("dead_after", "want at least %s, not %s", 2*minPingEvery, p.deadAfter)
	}
}
