package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"leasehold/internal/schema"
)

// set puts a value where its path leads. A key that the type does not have is kept
// for the config's reader, which knows what was meant. A list takes one more item,
// or all of them as JSON.
func (d *draft) set(table map[string]any, s *schema.Schema, path []string, text string) error {
	key := path[0]
	var sub *schema.Schema
	for _, p := range s.Properties {
		if p.Key == key {
			sub = p.Schema
		}
	}
	if len(path) > 1 {
		inner, ok := table[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			table[key] = inner
		}
		if sub != nil && len(sub.Properties) > 0 {
			return d.set(inner, sub, path[1:], text)
		}
		value, err := valueOf(itemsOf(sub), text)
		inner[strings.Join(path[1:], ".")] = value // a header's name may have a dot
		return err
	}
	value, err := valueOf(sub, text)
	if err != nil {
		return err
	}
	if list, ok := table[key].([]any); ok && sub != nil && sub.Type == "array" {
		more, _ := value.([]any)
		value = append(list, more...)
	}
	table[key] = value
	return nil
}

// itemsOf describes the values of a table whose keys are free; nil: it is none, or
// they may be anything.
func itemsOf(s *schema.Schema) *schema.Schema {
	if s == nil {
		return nil
	}
	described, ok := s.Additional.(map[string]any)
	if !ok {
		return nil
	}
	b, err := json.Marshal(described)
	items := new(schema.Schema)
	if err != nil || json.Unmarshal(b, items) != nil {
		return nil
	}
	return items
}

var (
	errSecret = errors.New("a secret has no place on a command line, which everybody on the machine can read; write env:NAME, file:PATH or credential:NAME")
	errTable  = errors.New(`is a table; set its keys one by one, or write it as JSON such as {"key":"value"}`)
)

// valueOf reads what was typed as the kind of value that its key takes. s is nil
// where that is not known.
func valueOf(s *schema.Schema, text string) (any, error) {
	if s == nil {
		return anything(text), nil
	}
	ref, referred := referenceIn(text)
	switch {
	case referred && (s.Secret || len(s.OneOf) > 0):
		return ref, nil
	case s.Secret:
		return nil, errSecret
	case len(s.OneOf) > 0:
		return text, nil
	}
	switch s.Type {
	case "array":
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			return parsed(text)
		}
		item, err := valueOf(s.Items, text)
		return []any{item}, err
	case "object":
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return nil, errTable
		}
		return parsed(text)
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a whole number (got %q)", text)
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a number (got %q)", text)
		}
		return n, nil
	case "boolean":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("must be true or false (got %q)", text)
		}
		return b, nil
	case "":
		return anything(text), nil
	default:
		return text, nil
	}
}

// referenceIn reads env:NAME, file:PATH, credential:NAME, secret:NAME, or the same as JSON. A path
// is made absolute: it was typed in this folder, and is read from another one.
func referenceIn(text string) (map[string]any, bool) {
	kind, name, ok := strings.Cut(text, ":")
	if !ok || name == "" {
		return nil, false
	}
	switch kind {
	case "file":
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
		return map[string]any{kind: name}, true
	case "env", "credential", "secret":
		return map[string]any{kind: name}, true
	}
	var ref map[string]any
	if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &ref) == nil && len(ref) == 1 {
		for _, kind := range []string{"env", "file", "credential", "secret"} {
			if _, ok := ref[kind].(string); ok {
				return ref, true
			}
		}
	}
	return nil, false
}

// anything is JSON, or else a text.
func anything(text string) any {
	if v, err := parsed(text); err == nil {
		return v
	}
	return text
}

// parsed reads JSON as TOML knows it: whole numbers stay whole.
func parsed(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return nil, errors.New("is not JSON; quote it for your shell")
	}
	return plainNumbers(v)
}

func plainNumbers(v any) (_ any, err error) {
	switch x := v.(type) {
	case nil:
		return nil, errors.New("null is no value of a config; leave the key out")
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n, nil
		}
		return x.Float64()
	case map[string]any:
		for key, item := range x {
			if x[key], err = plainNumbers(item); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range x {
			if x[i], err = plainNumbers(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// isCommand reports whether a key takes a program with its arguments.
func isCommand(p schema.Property) bool { return p.Key == "command" && p.Schema.Type == "array" }
