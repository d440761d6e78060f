package websocket

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// template is a frame, or a URL, with placeholders: {{id}}, {{cursor}}, {{NAME}} of
// the secrets, and in an acknowledgement {{/pointer}} into the event's frame.
//
// In a frame that is JSON a placeholder inside a string is replaced by the value
// as JSON escapes it, and one outside by the value as JSON writes it, so that a
// number stays a number. In any other frame it is replaced by the value as it is,
// without control characters: an id cannot smuggle in a line of its own.
type template struct {
	pieces []piece
	form   form
}

// piece is literal text, or a placeholder by its name or pointer.
type piece struct {
	text    string
	name    string
	pointer pointer // not nil: into the event's frame
	inside  bool    // JSON: stands inside a string; a URL: stands in the query
}

type form int

const (
	formText form = iota
	formJSON
	formURL
)

// values are what the placeholders of one frame stand for, as JSON scalars.
type values struct {
	id, cursor json.RawMessage // nil = not known
	secrets    map[string]string
	frame      []byte
}

const (
	nameID     = "id"
	nameCursor = "cursor"
)

// parseTemplate reads a frame's template. known are the names that may stand in
// it; pointers says whether pointers into the event's frame may.
func parseTemplate(s string, known []string, pointers bool) (*template, error) {
	t, err := parsePieces(s, known, pointers)
	if err != nil {
		return nil, err
	}
	t.markStrings()
	if t.valid("0") && t.valid(`""`) {
		t.form = formJSON
	}
	return t, nil
}

// parseURL reads a URL's template.
func parseURL(s string, known []string) (*template, error) {
	t, err := parsePieces(s, known, false)
	if err != nil {
		return nil, err
	}
	t.form = formURL
	query := false
	for i := range t.pieces {
		t.pieces[i].inside = query
		query = query || strings.Contains(t.pieces[i].text, "?")
	}
	return t, nil
}

func parsePieces(s string, known []string, pointers bool) (*template, error) {
	t := &template{}
	for {
		before, rest, found := strings.Cut(s, "{{")
		if before != "" {
			t.pieces = append(t.pieces, piece{text: before})
		}
		if !found {
			return t, nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, errors.New("{{ without }}")
		}
		p := piece{name: strings.TrimSpace(name)}
		switch {
		case pointers && strings.HasPrefix(p.name, "/"):
			var err error
			if p.pointer, err = parsePointer(p.name); err != nil {
				return nil, err
			}
		case !slices.Contains(known, p.name):
			return nil, fmt.Errorf("{{%s}} is not known here; there are: %s", p.name, strings.Join(known, ", "))
		}
		t.pieces = append(t.pieces, p)
		s = after
	}
}

// uses reports whether a placeholder stands in the template; none stands in nil.
func (t *template) uses(name string) bool {
	return t != nil && slices.ContainsFunc(t.pieces, func(p piece) bool { return p.name == name })
}

// markStrings finds the placeholders that stand inside a JSON string.
func (t *template) markStrings() {
	inside, escaped := false, false
	for i := range t.pieces {
		t.pieces[i].inside = inside
		for _, c := range []byte(t.pieces[i].text) {
			switch {
			case escaped:
				escaped = false
			case inside && c == '\\':
				escaped = true
			case c == '"':
				inside = !inside
			}
		}
	}
}

// valid reports whether the template is JSON with value outside its strings.
func (t *template) valid(value string) bool {
	var b bytes.Buffer
	for _, p := range t.pieces {
		switch {
		case p.name == "":
			b.WriteString(p.text)
		case !p.inside:
			b.WriteString(value)
		}
	}
	return json.Valid(b.Bytes())
}

// render writes the frame; false means that a value is not known, so there is no
// frame to send. In a URL such a value is empty.
func (t *template) render(v values) ([]byte, bool) {
	var b bytes.Buffer
	for _, p := range t.pieces {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		raw, ok := v.of(p)
		if !ok && t.form != formURL {
			return nil, false
		}
		b.WriteString(t.insert(p, raw))
	}
	return b.Bytes(), true
}

func (v values) of(p piece) (json.RawMessage, bool) {
	switch {
	case p.pointer != nil:
		raw, ok := p.pointer.in(v.frame)
		return raw, ok
	case p.name == nameID:
		return v.id, v.id != nil
	case p.name == nameCursor:
		return v.cursor, v.cursor != nil
	default:
		s, ok := v.secrets[p.name]
		return quote(s), ok
	}
}

func (t *template) insert(p piece, raw json.RawMessage) string {
	switch {
	case t.form == formJSON && !p.inside:
		return string(raw)
	case t.form == formJSON:
		q := quote(scalar(raw))
		return string(q[1 : len(q)-1])
	case t.form == formURL && p.inside:
		return url.QueryEscape(scalar(raw))
	case t.form == formURL:
		return url.PathEscape(scalar(raw))
	default:
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return -1
			}
			return r
		}, scalar(raw))
	}
}

// scalar is a JSON value as text: a string without its quotes, anything else as
// it stands.
func scalar(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return string(raw)
}

// quote writes s as a JSON string, with <, > and & as they are.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
