package sse

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
	"leasehold/internal/redact"
)

const (
	// readLimit bounds the data of one event, and one line of whatever kind: past it
	// the connection ends, since a line without end would look alive for ever.
	readLimit = 16 << 20
	// minWait is the least that answer_within and dead_after may be: below it a
	// healthy server fails.
	minWait = time.Second
	// unnamed is what the standard calls an event without an event line.
	unnamed = "message"
)

// plan is a Config with its templates and pointers parsed: all that a term needs,
// checked.
type plan struct {
	url     *jsonframe.Template
	place   string // host and path as configured: the stream that a cursor belongs to
	method  string
	header  http.Header
	host    string              // the Host header, where one is configured
	body    *jsonframe.Template // nil = none
	secrets map[string]string

	events       []string // empty = all
	layout       jsonframe.Layout
	maxSize      int
	answerWithin time.Duration
	deadAfter    time.Duration

	words *redact.Words // of the platform
}

// newPlan checks a config and reports every fault of it by its key.
func newPlan(c Config) (*plan, error) {
	p := &plan{
		method: c.Method, secrets: map[string]string{}, events: c.Events, maxSize: c.MaxSize,
		answerWithin: c.AnswerWithin.Std(), deadAfter: c.DeadAfter.Std(), words: redact.NewWords(),
	}
	for name, s := range c.Secrets {
		p.secrets[name] = s.Reveal()
	}
	f := &faults{}
	p.readRequest(c, handshake.New(p.secrets, p.words, f.add), f)
	p.readEvents(c, f)
	p.readLimits(f)
	return p, errors.Join(f.errs...)
}

// faults collects what is wrong, by key.
type faults struct{ errs []error }

func (f *faults) add(key, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
}

var methodName = regexp.MustCompile(`^[A-Z]+$`)

func (p *plan) readRequest(c Config, parts *handshake.Parts, f *faults) {
	p.url, p.place = parts.Address(c.URL, "a stream's", "http", "https")
	texts := map[string]string{}
	for name, text := range c.Headers {
		texts[name] = text.Reveal()
	}
	p.header, p.host = parts.Headers(texts, ours)
	if !methodName.MatchString(p.method) || slices.Contains([]string{"HEAD", "CONNECT", "OPTIONS", "TRACE"}, p.method) {
		f.add("method", "want GET or POST, or another whose answer may be a stream, not %q", p.method)
	}
	if body := c.Body.Reveal(); body != "" {
		t, err := jsonframe.ParseTemplate(body, parts.Names(jsonframe.NameCursor), false)
		if err != nil {
			f.add("body", "%w", err)
			return
		}
		if p.method == http.MethodGet {
			f.add("body", `a GET has none; set method = "POST"`)
		}
		p.body = t
		p.words.Hide(redact.InFrame(body)...)
	}
	for name, value := range map[string]string{"Accept": eventStream, "Cache-Control": "no-cache", "Content-Type": p.contentType()} {
		if p.header.Get(name) == "" && value != "" {
			p.header.Set(name, value)
		}
	}
	// A compressed stream is held back by whoever compresses it.
	p.header.Set("Accept-Encoding", "identity")
}

// ours says why a header is not for the configuration to set.
func ours(name string) string {
	switch name {
	case "Accept-Encoding":
		return "a compressed stream comes late; it is not asked for"
	case "Last-Event-Id":
		return "it is sent by itself, once an event is stored"
	case "Connection", "Content-Length", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return "the request sets it"
	}
	return ""
}

func (p *plan) contentType() string {
	switch {
	case p.body == nil:
		return ""
	case p.body.IsJSON():
		return "application/json"
	default:
		return "text/plain; charset=utf-8"
	}
}

func (p *plan) readEvents(c Config, f *faults) {
	for i, name := range c.Events {
		if name == "" || len(name) > maxName {
			f.add(fmt.Sprintf("events[%d]", i), "want a name of 1 to %d bytes; an event without one is called %s", maxName, unnamed)
		}
	}
	x := c.Pointers
	p.layout = jsonframe.ParseLayout(map[string]string{
		"id": x.ID, "type": x.Type, "time": x.Time, "conversation": x.Conversation, "thread": x.Thread, "sender": x.Sender, "text": x.Text,
	}, func(key, format string, args ...any) { f.add("pointers."+key, format, args...) })
}

func (p *plan) readLimits(f *faults) {
	if p.maxSize < 1 || p.maxSize > readLimit {
		f.add("max_size", "want 1 to %d bytes, not %d", readLimit, p.maxSize)
	}
	for key, d := range map[string]time.Duration{"answer_within": p.answerWithin, "dead_after": p.deadAfter} {
		if d < minWait {
			f.add(key, "want at least %s, not %s", minWait, d)
		}
	}
}

// takes reports whether events of a name are wanted.
func (p *plan) takes(name string) bool {
	if name == "" {
		name = unnamed
	}
	return len(p.events) == 0 || slices.Contains(p.events, name)
}

// cursor is a position to be stored. An empty id is one, too: the server asks to be
// begun with anew.
func (p *plan) cursor(id string) []byte { return jsonframe.Cursor(p.place, jsonframe.Quote(id)) }

// resumeFrom returns the stored position, nil when there is none for this address.
func (p *plan) resumeFrom(cursor []byte) json.RawMessage { return jsonframe.Position(p.place, cursor) }
