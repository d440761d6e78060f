package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"leasehold/internal/eventmatch"
)

// Match says which events a target takes: fields of the envelope's data, each with
// the values of which it must have one.
type Match map[string][]string

var matchType = reflect.TypeFor[Match]()

// match sets a Match. A dotted key that is not quoted makes tables in TOML; it is
// taken for what was meant.
func (w *walker) match(n *node, into Match, path, before string) {
	if n.kind != tableKind {
		w.wrong(n, path, "a table", "")
		return
	}
	for _, e := range n.entries {
		name := e.key
		switch {
		case strings.HasPrefix(name, "/"): // raw = { "/event/type" = "x" }
			name = before + name
		case before != "":
			name = before + "." + name
		}
		sub := dot(path, name)
		w.where[sub] = e.pos
		switch e.value.kind {
		case tableKind:
			w.match(e.value, into, path, name)
		case listKind:
			for i, item := range e.value.items {
				w.where[dot(sub, fmt.Sprint(i))] = item.pos
				w.oneOf(item, into, name, sub)
			}
			if len(e.value.items) == 0 {
				into[name] = []string{}
			}
		default:
			w.where[dot(sub, "0")] = e.value.pos
			w.oneOf(e.value, into, name, sub)
		}
	}
}

// oneOf adds a value, as text.
func (w *walker) oneOf(n *node, into Match, name, path string) {
	switch n.kind {
	case stringKind, boolKind:
		into[name] = append(into[name], n.text)
	case intKind:
		i, err := n.int()
		if err != nil {
			w.fail(n, path, "is out of range", "")
			return
		}
		into[name] = append(into[name], fmt.Sprint(i))
	default:
		w.wrong(n, path, "a string, a whole number, true, false, or a list of them", "")
	}
}

// match refuses what no event could ever fit.
func (v *validator) match(m Match, s spot) {
	for _, field := range sortedKeys(m) {
		at := s.key(field)
		path, err := eventmatch.ParsePath(field)
		switch {
		case errors.Is(err, eventmatch.ErrUnknown):
			v.fail(at, err.Error(), likeField(field))
			continue
		case err != nil:
			v.fail(at, err.Error(), "")
			continue
		case len(m[field]) == 0:
			v.fail(at, "has no value", `such as "acme", or a list of which one must fit`)
		}
		for i, value := range m[field] {
			if _, err := path.Pattern(value); err != nil {
				v.fail(at.item(i), err.Error(), "")
			}
		}
	}
}

// likeField suggests a field that exists.
func likeField(field string) string {
	switch field {
	case "type":
		return "events narrows by type"
	case "labels", "installation.labels":
		return `such as "installation.labels.tenant"`
	case "raw", "payload":
		return `such as "raw/event/channel", the way to a value in what the platform sent`
	}
	if rest, ok := strings.CutPrefix(field, "raw."); ok {
		return "write " + quote("raw/"+strings.ReplaceAll(rest, ".", "/"))
	}
	if near, ok := closest(field, eventmatch.Names()); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	for _, name := range eventmatch.Names() {
		if strings.HasPrefix(name, field+".") || strings.HasSuffix(name, "."+field) {
			return fmt.Sprintf("did you mean %q?", name)
		}
	}
	return "see docs/delivery.md for the fields"
}
