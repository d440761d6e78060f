package jsonframe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Template is a frame, or a URL, with placeholders: {{id}}, {{cursor}}, {{NAME}} of
// the secrets and of the parts of a message, and in an acknowledgement {{/pointer}}
// into the event's frame.
//
// In a frame that is JSON a placeholder inside a string is replaced by the value
// as JSON escapes it, and one outside by the value as JSON writes it, so that a
// number stays a number. Inside a string null is empty. In any other frame it is replaced by the value as it is,
// without control characters: an id cannot smuggle in a line of its own.
type Template struct {
	pieces []piece
	form   form
}

// piece is literal text, or a placeholder by its name or pointer.
type piece struct {
	text    string
	name    string
	pointer Pointer // not nil: into the event's frame
	inside  bool    // JSON: stands inside a string; a URL: stands in the query
}

type form int

const (
	formText form = iota
	formJSON
	formURL
)

// Values are what the placeholders of one frame stand for.
type Values struct {
	ID, Cursor json.RawMessage            // JSON scalars; nil = not known
	Message    map[string]json.RawMessage // JSON scalars, by name; they come before Secrets
	Secrets    map[string]string
	Frame      []byte // the event's, for pointers
}

// The names of what is no secret.
const (
	NameID     = "id"
	NameCursor = "cursor"
)

// ParseTemplate reads a frame's template. known are the names that may stand in
// it; pointers says whether pointers into the event's frame may.
func ParseTemplate(s string, known []string, pointers bool) (*Template, error) {
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

// ParseText reads the template of what is never JSON, such as a header's value.
func ParseText(s string, known []string) (*Template, error) { return parsePieces(s, known, false) }

// ParseURL reads a URL's template. In it a value that is not known is empty.
func ParseURL(s string, known []string) (*Template, error) {
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

func parsePieces(s string, known []string, pointers bool) (*Template, error) {
	t := &Template{}
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
			if p.pointer, err = ParsePointer(p.name); err != nil {
				return nil, err
			}
		case !slices.Contains(known, p.name):
			return nil, fmt.Errorf("{{%s}} is not known here; there are: %s", p.name, strings.Join(known, ", "))
		}
		t.pieces = append(t.pieces, p)
		s = after
	}
}

// IsJSON reports whether what is rendered is JSON whatever the values are.
func (t *Template) IsJSON() bool { return t.form == formJSON }

// Uses reports whether a placeholder stands in the template; none stands in nil.
func (t *Template) Uses(name string) bool {
	return t != nil && slices.ContainsFunc(t.pieces, func(p piece) bool { return p.name == name })
}

// markStrings finds the placeholders that stand inside a JSON string.
func (t *Template) markStrings() {
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
func (t *Template) valid(value string) bool {
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

// Render writes the frame; false means that a value is not known, so there is no
// frame to send. In a URL such a value is empty.
func (t *Template) Render(v Values) ([]byte, bool) {
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

func (v Values) of(p piece) (json.RawMessage, bool) {
	switch {
	case p.pointer != nil:
		raw, ok := p.pointer.In(v.Frame)
		return raw, ok
	case p.name == NameID:
		return v.ID, v.ID != nil
	case p.name == NameCursor:
		return v.Cursor, v.Cursor != nil
	case v.Message[p.name] != nil:
		return v.Message[p.name], true
	default:
		s, ok := v.Secrets[p.name]
		return Quote(s), ok
	}
}

func (t *Template) insert(p piece, raw json.RawMessage) string {
	text := Text(raw)
	if text == "null" && len(raw) == len(text) {
		text = ""
	}
	switch {
	case t.form == formJSON && !p.inside:
		return string(raw)
	case t.form == formJSON:
		q := Quote(text)
		return string(q[1 : len(q)-1])
	case t.form == formURL && p.inside:
		return url.QueryEscape(text)
	case t.form == formURL:
		return url.PathEscape(text)
	default:
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return -1
			}
			return r
		}, text)
	}
}
