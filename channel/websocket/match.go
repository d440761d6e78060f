package websocket

import (
	"fmt"

	"leasehold/internal/jsonframe"
)

// match is a parsed Match.
type match struct {
	whole   bool // the frame as text
	pointer jsonframe.Pointer
	equals  string
}

// match parses a condition; nil when it is not set.
func (f *faults) match(key string, m Match) *match {
	if m == (Match{}) {
		return nil
	}
	p, err := jsonframe.ParsePointer(m.Pointer)
	if err != nil {
		f.add(key+".pointer", "%w", err)
	}
	return &match{whole: m.Pointer == "", pointer: p, equals: m.Equals}
}

// listed parses a condition of a list, where an unset one is a mistake.
func (f *faults) listed(key string, i int, m Match) *match {
	parsed := f.match(fmt.Sprintf("%s[%d]", key, i), m)
	if parsed == nil {
		f.add(fmt.Sprintf("%s[%d]", key, i), "pointer is missing")
	}
	return parsed
}

// holds reports whether the condition holds for a frame; isJSON says whether
// pointers lead anywhere in it.
func (m *match) holds(frame []byte, isJSON bool) bool {
	switch {
	case m == nil:
		return false
	case m.whole && string(frame) == m.equals:
		return true
	case !isJSON:
		return false
	}
	raw, ok := m.pointer.In(frame)
	return ok && (m.equals == "" || jsonframe.Text(raw) == m.equals)
}

func anyHolds(all []*match, frame []byte, isJSON bool) bool {
	for _, m := range all {
		if m.holds(frame, isJSON) {
			return true
		}
	}
	return false
}
