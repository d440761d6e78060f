package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"leasehold/internal/secretname"
)

// plain sets a field whose kind says how it is written.
func (w *walker) plain(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	switch k := v.Kind(); {
	case k == reflect.String:
		if n.kind != stringKind {
			w.wrong(n, path, "a string", tag)
			return
		}
		if w.passworded(n, path) {
			return
		}
		v.SetString(n.text)
	case k == reflect.Bool:
		if n.kind != boolKind {
			w.wrong(n, path, "true or false", tag)
			return
		}
		v.SetBool(n.text == "true")
	case v.CanInt() || v.CanUint() || v.CanFloat():
		w.number(n, v, path, tag)
	case k == reflect.Slice:
		w.list(n, v, path, tag)
	case v.Type() == matchType:
		into := Match{}
		w.match(n, into, path, "")
		v.Set(reflect.ValueOf(into))
	case k == reflect.Map && v.Type().Key().Kind() == reflect.String:
		w.dict(n, v, path, tag)
	default:
		// A mistake in a channel type's struct, which its own tests show.
		w.fail(n, path, fmt.Sprintf("cannot be configured: its type is %s", v.Type()), "")
	}
}

// number sets a field from a number that fits into it.
func (w *walker) number(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if v.CanFloat() {
		if n.kind != intKind && n.kind != floatKind {
			w.wrong(n, path, "a number", tag)
			return
		}
		f, err := n.float()
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || v.OverflowFloat(f) {
			w.fail(n, path, "is out of range", "")
			return
		}
		v.SetFloat(f)
		return
	}
	if n.kind != intKind {
		w.wrong(n, path, "a whole number", tag)
		return
	}
	i, err := n.int()
	switch {
	case err != nil,
		v.CanInt() && v.OverflowInt(i),
		v.CanUint() && (i < 0 || v.OverflowUint(uint64(i))):
		w.fail(n, path, "is out of range", "")
	case v.CanInt():
		v.SetInt(i)
	default:
		v.SetUint(uint64(i))
	}
}

// list appends to a list. The first file that names the key replaces the default.
func (w *walker) list(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.kind != listKind {
		if n.kind == tableKind && shapeOf(v.Type().Elem()) == tableShape {
			w.fail(n, path, "is a list of tables", fmt.Sprintf("write [[%s]]", bare(n.name)))
			return
		}
		w.wrong(n, path, "a list", tag)
		return
	}
	if _, set := w.where[path]; !set {
		v.Set(reflect.MakeSlice(v.Type(), 0, len(n.items)))
	}
	for _, item := range n.items {
		sub := dot(path, strconv.Itoa(v.Len()))
		w.where[sub] = item.pos
		x := reflect.New(v.Type().Elem()).Elem()
		if x.Kind() == reflect.Struct && !w.channel {
			applyDefaults(x)
		}
		w.value(item, x, sub, "")
		v.Set(reflect.Append(v, x))
	}
}

// dict sets the keys of a free table. Keys that an earlier file set stay.
func (w *walker) dict(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.kind != tableKind {
		w.wrong(n, path, "a table", tag)
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	elem := v.Type().Elem()
	for _, e := range n.entries {
		sub := dot(path, e.key)
		w.where[sub] = e.value.pos
		x := reflect.New(elem).Elem()
		if shapeOf(elem) == maybeShape && secretname.Looks(e.key) && e.value.kind != tableKind && (elem == valueType || !secretname.OnlyPlaceholders(e.value.text)) {
			w.literal(e.value, sub)
			continue
		}
		w.value(e.value, x, sub, "")
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(v.Type().Key()), x)
	}
}

// free checks only what JSON cannot carry.
func (w *walker) free(n *node, path string) {
	var err error
	switch n.kind {
	case intKind:
		_, err = n.int()
	case floatKind:
		var f float64
		if f, err = n.float(); math.IsInf(f, 0) || math.IsNaN(f) {
			err = errRange
		}
	default:
		for _, e := range n.entries {
			w.free(e.value, path)
		}
		for _, item := range n.items {
			w.free(item, path)
		}
	}
	if err != nil {
		w.fail(n, path, "is out of range", "")
	}
}

var errRange = errors.New("out of range")

// literalNode is the node of a value that is written as one string: a variable of
// the environment, or a default. false: it is not written as the type is.
func literalNode(t reflect.Type, name, text string, pos Pos) (*node, bool) {
	n := &node{kind: stringKind, name: name, text: text, pos: pos}
	item := func(kind reflect.Type, s string) bool {
		x, ok := literalNode(kind, "", s, pos)
		n.add(x)
		return ok
	}
	t = deref(t)
	if shapeOf(t) != plainShape {
		return n, true
	}
	ok := true
	switch t.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		n.kind, n.text, ok = boolKind, strconv.FormatBool(b), err == nil
	case reflect.Float32, reflect.Float64:
		_, err := strconv.ParseFloat(text, 64)
		n.kind, ok = floatKind, err == nil || errors.Is(err, strconv.ErrRange)
	case reflect.Slice:
		n.kind = listKind
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				ok = item(t.Elem(), s) && ok
			}
		}
	case reflect.Map:
		n.kind = tableKind
		for s := range strings.SplitSeq(text, ",") {
			key, value, found := strings.Cut(s, "=")
			key = strings.TrimSpace(key)
			if x, good := literalNode(t.Elem(), "", strings.TrimSpace(value), pos); found && good && key != "" && n.get(key) == nil {
				n.put(key, pos, x)
				continue
			}
			ok = false
		}
	case reflect.String:
	default:
		_, err := strconv.ParseInt(text, 10, 64)
		n.kind, ok = intKind, err == nil || errors.Is(err, strconv.ErrRange)
	}
	return n, ok
}

// applyDefaults sets the fields of a struct, and of those in it, to what their
// default tags say. A default that is not of its type is a mistake of ours that
// every test shows.
func applyDefaults(v reflect.Value) {
	w := newWalker(Source{}, host{})
	for _, f := range fields(v.Type()) {
		if shapeOf(f.typ) == tableShape {
			applyDefaults(v.Field(f.index))
			continue
		}
		if text, ok := f.tag.Lookup("default"); ok && !f.later() {
			n, good := literalNode(f.typ, f.name, text, Pos{})
			w.value(n, v.Field(f.index), f.name, f.tag)
			if !good || len(w.faults) > 0 {
				panic(fmt.Sprintf("config: the default %q of %s.%s is not of its type", text, v.Type(), f.name))
			}
		}
	}
}
