package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"leasehold/channel"
	"leasehold/internal/secretname"
)

var textType = reflect.TypeFor[channel.Text]()

// literal refuses the secrets that a config holds as literals, by the rules that the
// config file has: a value of channel.Text in a table under a name that carries
// credentials, and a password in a URL. t is the type's config struct. What is no
// config at all is told when it is decoded.
func literal(t reflect.Type, raw json.RawMessage) error {
	var tree any
	_ = json.Unmarshal(raw, &tree) // nil of what is no JSON
	return literalIn(t, tree, "", false)
}

// literalIn looks through a value of type t; nil: of a type that is not known.
// named: the key's name carries credentials.
func literalIn(t reflect.Type, v any, key string, named bool) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case string:
		switch {
		case secretname.InURL(v):
			return fmt.Errorf("%s: a literal secret is refused; take the password out of the URL", key)
		case named && t == textType && !secretname.OnlyPlaceholders(v):
			return fmt.Errorf(`%s: a literal secret is refused; write { env = "NAME" } or { file = "PATH" }, or { secret = "NAME" } after leasehold secrets set NAME`, key)
		}
	case []any:
		for i, item := range v {
			if err := literalIn(elemOf(t), item, fmt.Sprintf("%s[%d]", key, i), false); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			child, free := childOf(t, name)
			if err := literalIn(child, v[name], strings.TrimPrefix(key+"."+name, "."), free && secretname.Looks(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func elemOf(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// childOf is the type behind a key; free: the table takes any key.
func childOf(t reflect.Type, name string) (child reflect.Type, free bool) {
	switch {
	case t == nil:
	case t.Kind() == reflect.Map:
		return t.Elem(), true
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && key == name {
				return f.Type, false
			}
		}
	}
	return nil, false
}
