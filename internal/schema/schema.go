// Package schema describes a config struct as a JSON Schema (draft 2020-12).
//
// The struct is the manual: its json tags are the keys, doc their sentences,
// default what they are when left out, and channel whether they are required or
// belong to the connection. Of reads all that; it decides nothing. Properties
// keep the order of the fields, in which people read them.
package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Draft is the dialect that a whole schema names in $schema.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Schema describes a value.
type Schema struct {
	Dialect     string          `json:"$schema,omitempty"`
	Title       string          `json:"title,omitempty"`
	Type        string          `json:"type,omitempty"`
	Description string          `json:"description,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Pattern     string          `json:"pattern,omitempty"`
	Properties  Properties      `json:"properties,omitempty"`
	Required    []string        `json:"required,omitempty"`
	Items       *Schema         `json:"items,omitempty"`
	OneOf       []*Schema       `json:"oneOf,omitempty"`
	// Additional describes the values of keys that Properties does not name; false
	// refuses such keys.
	Additional any `json:"additionalProperties,omitempty"`

	Secret     bool `json:"x-secret,omitempty"`     // a credential: written as a reference, never shown
	Connection bool `json:"x-connection,omitempty"` // changing it rebuilds the connection
}

// Known describes types that have a form of their own, such as a duration; false
// leaves a type to its kind.
type Known func(reflect.Type) (Schema, bool)

// Of describes a value of type t.
func Of(t reflect.Type, known Known) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known != nil {
		if s, ok := known(t); ok {
			return &s
		}
	}
	if t.Kind() == reflect.Struct && !writesText(t) {
		return ofStruct(t, known)
	}
	s := &Schema{}
	switch k := t.Kind(); {
	case t == reflect.TypeFor[json.RawMessage](), k == reflect.Interface: // anything
	case writesText(t), k == reflect.String, k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		s.Type = "string"
	case k == reflect.Bool:
		s.Type = "boolean"
	case k >= reflect.Int && k <= reflect.Uintptr:
		s.Type = "integer"
	case k == reflect.Float32, k == reflect.Float64:
		s.Type = "number"
	case k == reflect.Slice, k == reflect.Array:
		s.Type, s.Items = "array", Of(t.Elem(), known)
	case k == reflect.Map:
		s.Type, s.Additional = "object", Of(t.Elem(), known)
	}
	return s
}

func writesText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func ofStruct(t reflect.Type, known Known) *Schema {
	s := &Schema{Type: "object", Additional: false}
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || key == "" || key == "-" {
			continue
		}
		options := strings.Split(f.Tag.Get("channel"), ",")
		p := Of(f.Type, known)
		p.Description = f.Tag.Get("doc")
		p.Connection = slices.Contains(options, "connection")
		if d, ok := f.Tag.Lookup("default"); ok {
			p.Default = literal(p.Type, d)
		}
		if slices.Contains(options, "required") {
			s.Required = append(s.Required, key)
		}
		s.Properties = append(s.Properties, Property{key, p})
	}
	return s
}

// literal is a default as written in a tag: JSON where it is JSON of its key's
// type (true, 16, ["a"]), else a string.
func literal(kind, text string) json.RawMessage {
	if kind != "string" && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	b, _ := json.Marshal(text) // a string always marshals
	return b
}
