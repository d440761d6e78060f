package config

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// field is one key of a table: a field of one of our structs (tag toml) or of a
// channel type's config struct (tag json).
type field struct {
	name  string
	index int
	typ   reflect.Type
	tag   reflect.StructTag
}

// fields lists the keys of a struct. Fields without a tag are no keys.
func fields(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("toml")
		if !ok {
			tag = f.Tag.Get("json")
		}
		name, _, _ := strings.Cut(tag, ",")
		if f.IsExported() && name != "" && name != "-" {
			list = append(list, field{name, i, f.Type, f.Tag})
		}
	}
	return list
}

// is reports whether a channel type's field has an option: required, connection
// or secret.
func (f field) is(option string) bool {
	return slices.Contains(strings.Split(f.tag.Get("channel"), ","), option)
}

// later reports whether the key is one of a later version.
func (f field) later() bool { return f.tag.Get("later") == "true" }

var (
	configType       = reflect.TypeFor[Config]()
	pathType         = reflect.TypeFor[Path]()
	valueType        = reflect.TypeFor[Value]()
	referenceType    = reflect.TypeFor[Reference]()
	installationType = reflect.TypeFor[Installation]()
	rawType          = reflect.TypeFor[json.RawMessage]()

	revealer    = reflect.TypeFor[interface{ Reveal() string }]()
	maybeSecret = reflect.TypeFor[interface{ MaybeSecret() }]()
	textual     = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonable    = reflect.TypeFor[json.Unmarshaler]()
)

func has(t, method reflect.Type) bool {
	return t.Implements(method) || reflect.PointerTo(t).Implements(method)
}

// shape is how a type is written in a file.
type shape uint8

const (
	plainShape  shape = iota // by its kind
	secretShape              // only a reference
	maybeShape               // a reference or a literal string
	pathShape                // a string
	textShape                // a string that the type reads
	jsonShape                // what the type reads from JSON
	freeShape                // anything
	tableShape               // a table of known keys
)

func shapeOf(t reflect.Type) shape {
	switch {
	case has(t, maybeSecret):
		return maybeShape
	case t == referenceType || has(t, revealer):
		return secretShape
	case t == pathType:
		return pathShape
	case t == rawType || t.Kind() == reflect.Interface:
		return freeShape
	case has(t, textual):
		return textShape
	case has(t, jsonable):
		return jsonShape
	case t.Kind() == reflect.Struct:
		return tableShape
	}
	return plainShape
}

// deref is the type behind pointers: optional keys of a channel type.
func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
