package channel

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
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
		return nil, fmt.Errorf(`%s: a literal secret is refused; write { env = "NAME" } or { file = "PATH" }`, key)
	}
	if len(ref) == 1 {
		for kind, name := range ref {
			n, ok := name.(string)
			if !ok || !slices.Contains([]string{"env", "file", "credential"}, kind) {
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
	return nil, fmt.Errorf(`%s: a secret is { env = "NAME" }, { file = "PATH" } or { credential = "NAME" }`, key)
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
		for i := range t.NumField() {
			f := t.Field(i)
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
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) { // its own text would quote nothing secret, but names Go types
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

func fingerprint(key []byte, name string, v reflect.Value) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%q", name)
	for f := range fields(v.Type()) {
		if slices.Contains(f.opts, "connection") {
			fmt.Fprintf(h, "\x00%q=", f.key)
			writeValue(h, v.FieldByIndex(f.Index))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// writeValue writes a value with its secrets revealed and its maps sorted, each
// part quoted so that no two configs write the same bytes.
func writeValue(w interface{ Write([]byte) (int, error) }, v reflect.Value) {
	switch x := v.Interface().(type) {
	case Secret:
		fmt.Fprintf(w, "%q", x.Reveal())
		return
	case Text:
		fmt.Fprintf(w, "%q", x.Reveal())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f := range fields(v.Type()) {
			fmt.Fprintf(w, "%q:", f.key)
			writeValue(w, v.FieldByIndex(f.Index))
		}
	case reflect.Map:
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		fmt.Fprintf(w, "{%d}", len(keys))
		for _, k := range keys {
			fmt.Fprintf(w, "%q:", k.String())
			writeValue(w, v.MapIndex(k))
		}
	case reflect.Slice:
		fmt.Fprintf(w, "[%d]", v.Len())
		for i := range v.Len() {
			writeValue(w, v.Index(i))
		}
	case reflect.Pointer:
		fmt.Fprintf(w, "%t", v.IsNil())
		if !v.IsNil() {
			writeValue(w, v.Elem())
		}
	default:
		fmt.Fprintf(w, "%q", fmt.Sprint(v.Interface()))
	}
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
