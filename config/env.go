package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"leasehold/internal/child"
)

// environment stands for the file in faults of variables.
const environment = "environment"

const prefix = "LEASEHOLD_"

// notKeys are the variables of the program that are no keys of the config: where
// the file is, and what a program that we run finds in its environment, so that it
// can call leasehold.
var notKeys = []string{
	prefix + "CONFIG", child.Marker, prefix + "DELIVERY_ID", prefix + "EVENT_ID", prefix + "EVENT_TYPE", prefix + "INSTALLATION",
	prefix + "ATTEMPT", prefix + "REPLAY", prefix + "TARGET",
}

// variables is the environment as it was handed in; of a name that is there
// twice, the last counts.
type variables map[string]string

func readEnv(env []string, goos string) variables {
	vars := variables{}
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		if goos == "windows" {
			name = strings.ToUpper(name)
		}
		vars[name] = value
	}
	return vars
}

// envKey is a key that a variable can set: any but those of [[target]] and
// [[installation]].
type envKey struct {
	path  string
	index []int
	field field
	later bool
}

// envName is the variable of a key: LEASEHOLD_LEASE_TTL of lease.ttl.
func envName(path string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// envKeys lists the keys of a struct, those of its tables included, by variable.
func envKeys(t reflect.Type) map[string]envKey {
	keys := map[string]envKey{}
	var visit func(t reflect.Type, path string, index []int, later bool)
	visit = func(t reflect.Type, path string, index []int, later bool) {
		for _, f := range fields(t) {
			key := envKey{dot(path, f.name), append(slices.Clone(index), f.index), f, later || f.later()}
			switch {
			case shapeOf(f.typ) == tableShape:
				visit(f.typ, key.path, key.index, key.later)
			case f.typ.Kind() == reflect.Slice && shapeOf(f.typ.Elem()) == tableShape:
			default:
				keys[envName(key.path)] = key
			}
		}
	}
	visit(t, "", nil, false)
	return keys
}

// environ sets keys from variables; they win over every file, and a list of
// theirs replaces the files'. An empty variable is one that is not set.
func (w *walker) environ(vars variables, c *Config) {
	keys := envKeys(configType)
	names := make([]string, 0, len(vars))
	for name := range vars {
		if strings.HasPrefix(name, prefix) && !slices.Contains(notKeys, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		key, known := keys[name]
		if !known {
			if !w.envs[name] { // a reference to a secret may name it
				w.faults = append(w.faults, Fault{File: environment, Key: name, Message: "is not a key of the config", Hint: likeVariable(name, keys)})
			}
			continue
		}
		pos := Pos{File: environment}
		n, ok := literalNode(key.field.typ, name, vars[name], pos)
		switch {
		case key.later:
			w.fail(n, key.path, notYet, "")
		case vars[name] == "":
		case !ok:
			w.fail(n, key.path, "must be "+wants(key.field.typ), "")
		default:
			delete(w.where, key.path)
			w.value(n, reflect.ValueOf(c).Elem().FieldByIndex(key.index), key.path, key.field.tag)
			w.where[key.path] = pos
		}
	}
}

// wants names how a variable of a type is written.
func wants(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Map:
		return "a list such as key=value,key=value"
	case reflect.Slice:
		return "a list such as one,two"
	case reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// likeVariable suggests a variable that exists.
func likeVariable(name string, keys map[string]envKey) string {
	for _, list := range []string{"TARGET_", "INSTALLATION_"} {
		if strings.HasPrefix(name, prefix+list) {
			return "targets and installations are set in a file"
		}
	}
	known := notKeys[:1:1] // the others are nobody's to set
	for k, key := range keys {
		if !key.later {
			known = append(known, k)
		}
	}
	slices.Sort(known) // the same suggestion every time
	if near, ok := closest(name, known); ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	for _, k := range known {
		if strings.HasSuffix(k, "_"+strings.TrimPrefix(name, prefix)) {
			return fmt.Sprintf("did you mean %s?", k)
		}
	}
	return ""
}
