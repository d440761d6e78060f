package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// targetsOnly is a tree that has targets and nothing else.
type targetsOnly struct {
	Targets []Target `toml:"target"`
}

// ParseTarget reads a target from JSON: the keys of a [[target]] without its name, as
// JSON writes them. It refuses what the file refuses, and a path that is not absolute,
// since there is no folder that it could belong to. The error is Faults with all that
// is wrong. Whether the installation of a message target is there, only the store
// knows.
func ParseTarget(src Source, name string, raw json.RawMessage) (Target, error) {
	h, err := thisHost(src)
	if err != nil {
		return Target{}, Faults{{Message: "the working folder is not known: " + err.Error()}}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return Target{}, Faults{{Key: ownerLabel("target", name, 1), Message: "is not JSON"}}
	}
	keys, ok := tree.(map[string]any)
	if !ok {
		return Target{}, Faults{{Key: ownerLabel("target", name, 1), Message: "must be an object"}}
	}
	if _, twice := keys["name"]; twice {
		return Target{}, Faults{{Key: ownerLabel("target", name, 1), Message: "name: it stands beside the target, not in it"}}
	}
	keys["name"] = name
	root, list := &node{kind: tableKind}, &node{kind: listKind, made: elements}
	root.put("target", Pos{}, list)
	list.add(nodeOf(keys))

	w := newWalker(src, h)
	var only targetsOnly
	w.table(root, reflect.ValueOf(&only).Elem(), "", false)
	v := &validator{where: w.where, bad: w.bad}
	v.table(reflect.ValueOf(&only).Elem(), spot{})
	for i := range only.Targets {
		t, s := &only.Targets[i], elementSpot("target", name, i)
		v.define(map[string]string{}, t.Name, s.key("name"), t.Pos)
		v.target(t, s)
		v.rooted(t, s)
	}
	if err := append(w.faults, v.faults...).err(); err != nil {
		return Target{}, err
	}
	return only.Targets[0], nil
}

// nodeOf is JSON as a tree. What is null is not there.
func nodeOf(v any) *node {
	switch v := v.(type) {
	case map[string]any:
		n := &node{kind: tableKind, made: inlined}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] != nil {
				n.put(key, Pos{}, nodeOf(v[key]))
			}
		}
		return n
	case []any:
		n := &node{kind: listKind}
		for _, item := range v {
			n.add(nodeOf(item))
		}
		return n
	case json.Number:
		if text := v.String(); strings.ContainsAny(text, ".eE") {
			return &node{kind: floatKind, text: text}
		}
		return &node{kind: intKind, text: v.String()}
	case bool:
		return &node{kind: boolKind, text: fmt.Sprint(v)}
	case string:
		return &node{kind: stringKind, text: v}
	default: // null, in a list
		return &node{kind: stringKind}
	}
}

// rooted refuses files without an absolute path.
func (v *validator) rooted(t *Target, s spot) {
	look := func(at spot, path string) {
		if path != "" && !filepath.IsAbs(path) {
			v.fail(at, "must be an absolute path", "")
		}
	}
	reference := func(at spot, r Reference) {
		if r.Kind == "file" {
			look(at, r.Name)
		}
	}
	look(s.key("ca_file"), string(t.CAFile))
	look(s.key("client_cert"), string(t.ClientCert))
	reference(s.key("client_key"), t.ClientKey)
	for i, r := range t.SigningKeys {
		reference(s.key("signing_keys").item(i), r)
	}
	for _, name := range sortedKeys(t.Headers) {
		reference(s.key("headers").key(name), t.Headers[name].Reference)
	}
	for _, name := range sortedKeys(t.Env) {
		reference(s.key("env").key(name), t.Env[name].Reference)
	}
}

// JSON is what ParseTarget reads as t, with its keys sorted: those that are not as
// they would be without being named.
func (t Target) JSON() json.RawMessage {
	var bare Target
	applyDefaults(reflect.ValueOf(&bare).Elem())
	was, is := reflect.ValueOf(bare), reflect.ValueOf(t)
	keys := map[string]any{}
	for _, f := range fields(is.Type()) {
		x := is.Field(f.index)
		unset := x.IsZero() && x.Kind() != reflect.Bool || x.Kind() == reflect.Map && x.Len() == 0 // made by code, or emptied
		if f.name == "name" || unset || reflect.DeepEqual(x.Interface(), was.Field(f.index).Interface()) {
			continue
		}
		keys[f.name] = written(x.Interface())
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(keys) // texts, numbers, lists and tables of them
	return json.RawMessage(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// written is a value as JSON has it where the file has a form of its own.
func written(v any) any {
	switch v := v.(type) {
	case Reference:
		return map[string]string{v.Kind: v.Name}
	case Value:
		if v.Kind != "" {
			return written(v.Reference)
		}
		return v.Literal
	case []Reference:
		all := make([]any, len(v))
		for i, r := range v {
			all[i] = written(r)
		}
		return all
	case map[string]Value:
		all := make(map[string]any, len(v))
		for name, x := range v {
			all[name] = written(x)
		}
		return all
	default:
		return v
	}
}

// Form is how a key of a target is written.
type Form int

// The forms.
const (
	UnknownForm Form = iota // there is no such key
	TextForm
	FileForm // a path
	NumberForm
	FlagForm // true or false
	ListForm // of texts
	TableForm
	SecretForm  // a reference
	SecretsForm // a list of them
)

// TargetForm is how a key of a target is written.
func TargetForm(key string) Form {
	f, ok := find(fields(reflect.TypeFor[Target]()), key)
	switch {
	case !ok, key == "name":
		return UnknownForm
	case f.typ == referenceType:
		return SecretForm
	case f.typ == reflect.TypeFor[[]Reference]():
		return SecretsForm
	case f.typ == pathType:
		return FileForm
	case shapeOf(f.typ) == textShape:
		return TextForm
	}
	switch f.typ.Kind() {
	case reflect.Slice:
		return ListForm
	case reflect.Map:
		return TableForm
	case reflect.Bool:
		return FlagForm
	case reflect.Int:
		return NumberForm
	default:
		return TextForm
	}
}
