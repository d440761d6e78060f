package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// walker holds trees against structs: it finds what is wrong with each value and
// sets the fields from those that are right. One walker sees all files and the
// environment, so that later values win and lists grow.
type walker struct {
	src    Source
	host   host
	folder string // that relative paths of the file being walked belong to
	faults Faults

	where map[string]Pos  // of each key that was set, by its path
	bad   map[string]bool // paths with a fault: nothing more is said about them
	uses  []Use
	envs  map[string]bool // variables that references name

	layouts map[reflect.Type][]field
	rider   bool // inside the config of an installation with via
	channel bool // inside a channel type's config
}

func newWalker(src Source, h host) *walker {
	return &walker{
		src: src, host: h, where: map[string]Pos{}, bad: map[string]bool{},
		envs: map[string]bool{}, layouts: map[reflect.Type][]field{},
	}
}

// fields is fields(t), remembered: there may be thousands of installations.
func (w *walker) fields(t reflect.Type) []field {
	l, ok := w.layouts[t]
	if !ok {
		l = fields(t)
		w.layouts[t] = l
	}
	return l
}

// fail reports a fault of a value; at pos, when that is not the value's own.
func (w *walker) fail(n *node, path, message, hint string, pos ...Pos) {
	at := append(pos, n.pos)[0]
	w.bad[path] = true
	w.faults = append(w.faults, Fault{at.File, at.Line, at.Col, n.label(), message, hint})
}

// wrong reports a value of the wrong kind. It never shows the value.
func (w *walker) wrong(n *node, path, want string, tag reflect.StructTag) {
	hint := ""
	if def := tag.Get("default"); def != "" && strings.HasPrefix(want, "a string") {
		hint = fmt.Sprintf("such as %s = %q", bare(n.name), def)
	}
	w.fail(n, path, fmt.Sprintf("must be %s, not %s", want, words[n.kind]), hint)
}

// value checks n against the type of v and sets v. path names the value for the
// program: lease.ttl, installation.3.config.url.
func (w *walker) value(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	shape := shapeOf(v.Type())
	if (field{tag: tag}).is("secret") {
		shape = secretShape
	}
	switch shape {
	case secretShape:
		w.secret(n, v, path)
	case maybeShape:
		w.maybe(n, v, path)
	case pathShape:
		w.path(n, v, path, tag)
	case freeShape:
		w.free(n, path)
	case textShape:
		w.text(n, v, path, tag)
	case jsonShape:
		w.json(n, v, path)
	case tableShape:
		w.table(n, v, path, false)
	default:
		w.plain(n, v, path, tag)
	}
	if w.channel && !w.bad[path] {
		if message := broken(v, tag); message != "" {
			w.fail(n, path, message, "")
		}
	}
}

// table walks the keys of a table that has known ones. later: all of them are of
// a later version.
func (w *walker) table(n *node, v reflect.Value, path string, later bool) {
	if n.kind != tableKind {
		w.wrong(n, path, "a table", "")
		return
	}
	known := w.fields(v.Type())
	for _, e := range n.entries {
		f, ok := find(known, e.key)
		if !ok {
			w.unknown(n, e, v, path)
			continue
		}
		sub := dot(path, e.key)
		switch {
		case f.typ.Kind() == reflect.Struct && shapeOf(f.typ) == tableShape && e.value.kind == tableKind:
			w.where[sub] = e.pos
			w.table(e.value, v.Field(f.index), sub, later || f.later())
		case later || f.later():
			w.fail(e.value, sub, notYet, "", e.pos)
		case v.Type() == installationType && f.typ == rawType:
			// after the type is known
		default:
			w.value(e.value, v.Field(f.index), sub, f.tag)
			w.where[sub] = e.value.pos
		}
	}
	if inst, ok := reflect.TypeAssert[*Installation](v.Addr()); ok {
		inst.Pos = n.pos
		w.installation(n, inst, path)
	}
	if t, ok := reflect.TypeAssert[*Target](v.Addr()); ok {
		t.Pos = n.pos
	}
	if w.channel {
		w.missing(n, known, path)
	}
}

const notYet = "not in this version"

// missing reports the required keys of a channel type that n lacks. What belongs
// to the connection is the carrier's, not a rider's.
func (w *walker) missing(n *node, known []field, path string) {
	for _, f := range known {
		value := n.get(f.name)
		absent := &node{kind: tableKind, pos: n.pos, parent: n, name: f.name}
		switch {
		case value == nil && shapeOf(f.typ) == tableShape:
			w.missing(absent, w.fields(f.typ), dot(path, f.name))
		case !f.is("required") || w.rider && f.is("connection"):
		case value == nil:
			w.fail(absent, dot(path, f.name), "is missing", "")
		case value.kind == stringKind && value.text == "" && !w.bad[dot(path, f.name)]:
			w.fail(value, dot(path, f.name), "must not be empty", "")
		}
	}
}

// text lets the type read a string. Its error is shown without the string, which
// may be a secret in the wrong place.
func (w *walker) text(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.kind != stringKind {
		w.wrong(n, path, "a string in quotes", tag)
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.text)); err != nil {
		w.fail(n, path, without(err.Error(), n.text), "")
	}
}

// json lets the type read its own JSON.
func (w *walker) json(n *node, v reflect.Value, path string) {
	if w.free(n, path); w.bad[path] {
		return
	}
	b, err := n.rawJSON()
	if err == nil {
		err = json.Unmarshal(b, v.Addr().Interface())
	}
	if err != nil {
		w.fail(n, path, "is not what the type reads", "")
	}
}

func (w *walker) path(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.kind != stringKind {
		w.wrong(n, path, "a string", tag)
		return
	}
	if n.text != "" {
		n.text = w.absolute(n.text)
	}
	v.SetString(n.text)
}

func find(known []field, name string) (field, bool) {
	for _, f := range known {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func dot(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// without takes a string out of a message that a type made of it: as %q writes
// it, and as it is when it is long enough to be a secret.
func without(message, text string) string {
	if text == "" {
		return message
	}
	quoted := fmt.Sprintf("%q", text)
	message = strings.ReplaceAll(message, quoted, "it")
	if len(text) >= 6 {
		message = strings.ReplaceAll(message, quoted[1:len(quoted)-1], "…")
		message = strings.ReplaceAll(message, text, "…")
	}
	return message
}
