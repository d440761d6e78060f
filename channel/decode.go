package channel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

var (
	secretType = reflect.TypeFor[Secret]()
	textType   = reflect.TypeFor[Text]()
)

// resolveTree replaces each secret reference that stands where a Secret or a
// Text is wanted by its value.
func resolveTree(t reflect.Type, raw json.RawMessage, resolve Resolver) ([]byte, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("config is not JSON: %w", err)
	}
	if dec.More() {
		return nil, errors.New("config is not JSON: something follows its end")
	}
	if _, ok := tree.(map[string]any); !ok {
		return nil, errors.New("config is not a table of keys")
	}
	tree, err := resolveValue(t, tree, "", resolve)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

func resolveValue(t reflect.Type, v any, key string, resolve Resolver) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == secretType || t == textType {
		return resolveSecret(t, v, key, resolve)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			ft, ok := childType(t, name)
			if !ok {
				if t.Kind() == reflect.Struct {
					// Said here because the decoder would take a key that differs only by
					// its case, and with it a literal secret.
					return nil, fmt.Errorf("unknown key %q", join(key, name))
				}
				continue // the decoder says that no table belongs here
			}
			r, err := resolveValue(ft, item, join(key, name), resolve)
			if err != nil {
				return nil, err
			}
			v[name] = r
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return v, nil
		}
		for i, item := range v {
			r, err := resolveValue(t.Elem(), item, fmt.Sprintf("%s[%d]", key, i), resolve)
			if err != nil {
				return nil, err
			}
			v[i] = r
		}
	}
	return v, nil
}

func resolveSecret(t reflect.Type, v any, key string, resolve Resolver) (any, error) {
	ref, ok := v.(map[string]any)
	if !ok {
		if _, literal := v.(string); literal && t == textType {
			return v, nil
		}
		return nil, fmt.Errorf(`%s: a literal secret is refused; write { env = "NAME" } or { file = "PATH" }, or { secret = "NAME" } after leasehold secrets set NAME`, key)
	}
	if len(ref) == 1 {
		for kind, name := range ref {
			n, ok := name.(string)
			if !ok || !slices.Contains([]string{"env", "file", "credential", "secret"}, kind) {
				break
			}
			if resolve == nil {
				return nil, fmt.Errorf("%s: no secrets can be resolved here", key)
			}
			value, err := resolve(kind, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			return value, nil
		}
	}
	return nil, fmt.Errorf(`%s: a secret is { env = "NAME" }, { file = "PATH" }, { credential = "NAME" } or { secret = "NAME" }`, key)
}

func childType(t reflect.Type, name string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		for f := range fields(t) {
			if f.key == name {
				return f.Type, true
			}
		}
	}
	return nil, false
}

type field struct {
	reflect.StructField
	key  string
	opts []string
}

func fields(t reflect.Type) func(func(field) bool) {
	return func(yield func(field) bool) {
		for f := range t.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || key == "" || key == "-" {
				continue
			}
			if !yield(field{f, key, strings.Split(f.Tag.Get("channel"), ",")}) {
				return
			}
		}
	}
}

func decodeStrict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its own text would quote nothing secret, but names Go types
		return fmt.Errorf("%s: want %s, got %s", wrong.Field, wrong.Type, wrong.Value)
	}
	return err
}

func requireFields(v reflect.Value, prefix string) error {
	for f := range fields(v.Type()) {
		fv := v.FieldByIndex(f.Index)
		if slices.Contains(f.opts, "required") && fv.IsZero() {
			return fmt.Errorf("%s is missing", join(prefix, f.key))
		}
		if fv.Kind() == reflect.Struct && f.Type != secretType && f.Type != textType {
			if err := requireFields(fv, join(prefix, f.key)); err != nil {
				return err
			}
		}
	}
	return nil
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
