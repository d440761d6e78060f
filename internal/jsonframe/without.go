package jsonframe

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// secretLeast is how many bytes a value must have to be looked for beyond its place:
// a shorter one would be found in what has nothing to do with it.
const secretLeast = 8

// Without is a document, which must be JSON, with null in the place of what pointers
// point to, and of every other string that has one of these strings in it, whatever way
// it is escaped. All other bytes stay as they are. Of equal names each is meant.
func Without(doc []byte, pointers ...Pointer) []byte {
	var secrets []string
	for _, p := range pointers {
		if found, ok := p.In(doc); ok {
			if s := Text(found); found[0] == '"' {
				secrets = append(secrets, s)
			}
		}
	}
	return without(doc, pointers, secrets)
}

// WithoutText is a document, which must be JSON, with null in the place of every string
// that has one of the secrets in it.
func WithoutText(doc []byte, secrets ...string) []byte { return without(doc, nil, secrets) }

func without(doc []byte, pointers []Pointer, secrets []string) []byte {
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < secretLeast })
	e := eraser{walker: walker{doc: doc}, secrets: secrets}
	e.value(pointers, 0)
	if e.kept == 0 {
		return doc
	}
	return append(e.out, doc[e.kept:]...)
}

// eraser copies a document but for what is to go.
type eraser struct {
	walker
	secrets []string
	out     []byte
	kept    int // what is before it in doc was copied, or has gone
}

// value consumes the next value. at are the pointers that lead into it, with the names
// that are left of them.
func (e *eraser) value(at []Pointer, depth int) {
	e.space()
	start := e.at
	if depth > maxDepth {
		e.at = len(e.doc)
		return
	}
	if slices.ContainsFunc(at, func(p Pointer) bool { return len(p) == 0 }) {
		if e.skip(depth) {
			e.erase(start, "null")
		}
		return
	}
	switch e.peek() {
	case '{':
		e.members(at, depth)
	case '[':
		e.elements(at, depth)
	case '"':
		if e.text() && e.secret(e.doc[start:e.at]) {
			e.erase(start, "null")
		}
	default:
		e.skip(depth)
	}
}

func (e *eraser) members(at []Pointer, depth int) {
	e.at++ // {
	for e.space(); e.peek() == '"'; e.space() {
		start := e.at
		if !e.text() {
			return
		}
		name := e.doc[start:e.at]
		if e.secret(name) {
			e.erase(start, `"-"`)
		}
		if e.space(); !e.take(':') {
			return
		}
		e.value(into(at, func(want string) bool { return named(name, want) }), depth+1)
		if e.space(); !e.take(',') {
			break
		}
	}
	e.take('}')
}

func (e *eraser) elements(at []Pointer, depth int) {
	e.at++ // [
	for i := 0; ; i++ {
		if e.space(); e.take(']') || e.peek() == 0 {
			return
		}
		e.value(into(at, func(want string) bool { return want == strconv.Itoa(i) }), depth+1)
		if e.space(); !e.take(',') {
			e.take(']')
			return
		}
	}
}

// into are the pointers that lead further by a name that fits.
func into(at []Pointer, fits func(string) bool) (further []Pointer) {
	for _, p := range at {
		if fits(p[0]) {
			further = append(further, p[1:])
		}
	}
	return further
}

// erase puts something in the place of what was consumed since start.
func (e *eraser) erase(start int, instead string) {
	e.out = append(append(e.out, e.doc[e.kept:start]...), instead...)
	e.kept = e.at
}

// secret reports whether a quoted string has one of the secrets in it.
func (e *eraser) secret(quoted []byte) bool {
	if len(e.secrets) == 0 {
		return false
	}
	s := string(quoted)
	if bytes.IndexByte(quoted, '\\') >= 0 {
		_ = json.Unmarshal(quoted, &s) // it is JSON
	}
	return slices.ContainsFunc(e.secrets, func(secret string) bool { return strings.Contains(s, secret) })
}
