// Package wording is text with fields of an event in it: "{sender.name}: {text}".
//
// The fields are those of package eventmatch, and beside them {type}, {timestamp},
// {id}, {node.name} and {payload}, and {system.NAME} for what a system event says. A
// field that an event does not have is empty. {{ and }} are braces.
package wording

import (
	"errors"
	"fmt"
	"strings"

	"leasehold/internal/eventmatch"
	"leasehold/internal/jsonframe"
)

// Text is a text with fields, read.
type Text struct{ pieces []piece }

// piece is literal text, or a field of an envelope.
type piece struct {
	text  string
	field jsonframe.Pointer // nil: text
}

// Parse reads a text. Its error names the field that no event has, or the brace
// that has no other.
func Parse(s string) (*Text, error) {
	t := &Text{}
	var literal strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			literal.WriteString(s)
			break
		}
		literal.WriteString(s[:i])
		brace, rest := s[i], s[i+1:]
		if rest != "" && rest[0] == brace {
			literal.WriteByte(brace)
			s = rest[1:]
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		switch {
		case brace == '}':
			return nil, errors.New("has a } without its {; write }} for a brace")
		case !closed:
			return nil, errors.New("has a { without its }; write {{ for a brace")
		}
		field, err := pointer(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		t.pieces = append(t.pieces, piece{text: literal.String()}, piece{field: field})
		literal.Reset()
		s = after
	}
	t.pieces = append(t.pieces, piece{text: literal.String()})
	return t, nil
}

// Names lists the fields, for suggestions. Those that continue end with what stands
// before the rest.
func Names() []string {
	return append([]string{"type", "timestamp", "id", "node.name", "payload", system}, eventmatch.Names()...)
}

const system = "system."

// pointer is where an envelope has a field.
func pointer(name string) (jsonframe.Pointer, error) {
	switch name {
	case "type", "timestamp":
		return jsonframe.Pointer{name}, nil
	case "id", "node.name", "payload":
		return nested(name), nil
	}
	if rest, ok := strings.CutPrefix(name, system); ok && rest != "" {
		return nested(name), nil
	}
	p, err := eventmatch.ParsePath(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("{%s} %w", name, err)
	case p.Name == eventmatch.Raw:
		return append(nested(p.Name), p.Pointer...), nil
	case p.Rest != "":
		return append(nested(p.Name), p.Rest), nil
	}
	return nested(p.Name), nil
}

// nested is a name of the envelope's data, its dots taken apart.
func nested(name string) jsonframe.Pointer {
	return append(jsonframe.Pointer{"data"}, strings.Split(name, ".")...)
}

// Render fills in the fields of an envelope, as delivery sends it.
func (t *Text) Render(envelope []byte) string {
	var b strings.Builder
	for _, p := range t.pieces {
		b.WriteString(p.text)
		if p.field == nil {
			continue
		}
		if raw, ok := p.field.In(envelope); ok && string(raw) != "null" {
			b.WriteString(jsonframe.Text(raw))
		}
	}
	return b.String()
}
