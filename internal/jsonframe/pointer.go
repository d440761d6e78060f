package jsonframe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Pointer is a parsed JSON pointer (RFC 6901): the unescaped names on the way to
// a value. The empty one points to the whole document.
type Pointer []string

// ParsePointer reads a pointer as it is written: "" or /name/0/name.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON pointer: it begins with /", s)
	}
	names := strings.Split(s[1:], "/")
	for i, name := range names {
		rest := name
		for {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if after == "" || after[0] != '0' && after[0] != '1' {
				return nil, fmt.Errorf("%q is no JSON pointer: write ~ as ~0 and / as ~1", s)
			}
			rest = after[1:]
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names, nil
}

// In returns the value that p points to in doc, as it stands there, or false.
// Nothing is decoded on the way: eight pointers into a frame cost eight walks over
// its bytes and no memory. Of equal names the last one counts, as for most
// decoders. Bytes that are not JSON end the walk; what was found before them is
// returned, which finds the id of a frame that was cut short.
func (p Pointer) In(doc []byte) (json.RawMessage, bool) {
	w := walker{doc: doc}
	return w.find(p)
}

// Scalar is the string or number that p points to in doc, or nil; a nil pointer
// leads nowhere. Neither a table nor null, true or an empty string says who or what
// something is.
func (p Pointer) Scalar(doc []byte) json.RawMessage {
	if p == nil {
		return nil
	}
	raw, ok := p.In(doc)
	if !ok || len(raw) == 0 || bytes.Equal(raw, []byte(`""`)) {
		return nil
	}
	if raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return raw
	}
	return nil
}

// walker goes over JSON from left to right. It accepts more than JSON and never
// reads past its end.
type walker struct {
	doc []byte
	at  int
}

// maxDepth ends the walk into a document made to exhaust the stack; encoding/json
// allows the same.
const maxDepth = 10000

// find consumes the next value and returns what p points to in it.
func (w *walker) find(p Pointer) (json.RawMessage, bool) {
	w.space()
	if len(p) == 0 {
		start := w.at
		if !w.skip(0) {
			return nil, false
		}
		return w.doc[start:w.at], true
	}
	switch w.peek() {
	case '{':
		return w.member(p)
	case '[':
		return w.element(p)
	default:
		w.skip(0)
		return nil, false
	}
}

func (w *walker) member(p Pointer) (found json.RawMessage, ok bool) {
	w.at++ // {
	for w.space(); w.peek() == '"'; w.space() {
		start := w.at
		if !w.text() {
			return found, ok
		}
		name := w.doc[start:w.at]
		if w.space(); !w.take(':') {
			return found, ok
		}
		if named(name, p[0]) {
			found, ok = w.find(p[1:])
		} else if w.space(); !w.skip(0) {
			return found, ok
		}
		if w.space(); !w.take(',') {
			break
		}
	}
	w.take('}')
	return found, ok
}

func (w *walker) element(p Pointer) (found json.RawMessage, ok bool) {
	want, err := strconv.Atoi(p[0])
	if err != nil || strconv.Itoa(want) != p[0] || want < 0 {
		want = -1 // "-", "01", "x": no element
	}
	w.at++ // [
	for i := 0; ; i++ {
		if w.space(); w.take(']') {
			return found, ok
		}
		if i == want {
			found, ok = w.find(p[1:])
		} else if !w.skip(0) {
			return found, ok
		}
		if w.space(); !w.take(',') {
			w.take(']')
			return found, ok
		}
	}
}

// skip consumes a value; false means that it is not whole.
func (w *walker) skip(depth int) bool {
	if depth > maxDepth {
		w.at = len(w.doc)
		return false
	}
	switch c := w.peek(); c {
	case 0:
		return false
	case '"':
		return w.text()
	case '{', '[':
		return w.nested(depth)
	default:
		start := w.at
		for w.at < len(w.doc) && !delimits(w.doc[w.at]) {
			w.at++
		}
		return w.at > start
	}
}

func (w *walker) nested(depth int) bool {
	end := byte('}')
	if w.peek() == '[' {
		end = ']'
	}
	w.at++
	for {
		w.space()
		switch c := w.peek(); {
		case c == 0:
			return false
		case c == end:
			w.at++
			return true
		case c == ',' || c == ':':
			w.at++
		case !w.skip(depth + 1):
			return false
		}
	}
}

func delimits(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '{', '[', '"':
		return true
	}
	return false
}

// text consumes a string with its quotes.
func (w *walker) text() bool {
	for i := w.at + 1; i < len(w.doc); i++ {
		switch w.doc[i] {
		case '\\':
			i++
		case '"':
			w.at = i + 1
			return true
		}
	}
	w.at = len(w.doc)
	return false
}

func (w *walker) space() {
	for w.at < len(w.doc) {
		switch w.doc[w.at] {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end.
func (w *walker) peek() byte {
	if w.at < len(w.doc) {
		return w.doc[w.at]
	}
	return 0
}

func (w *walker) take(c byte) bool {
	if w.peek() != c {
		return false
	}
	w.at++
	return true
}

// named reports whether a quoted name is want.
func named(quoted []byte, want string) bool {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == want
	}
	var s string
	return json.Unmarshal(quoted, &s) == nil && s == want
}
