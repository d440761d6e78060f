package app

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leasehold/channel"
	"leasehold/config"
)

// typeKeys lists the keys of a type's config with their default tags, those of a
// table within it by their path.
func typeKeys(t reflect.Type, path string) map[string]string {
	keys := map[string]string{}
	for f := range t.Fields() {
		name := path + f.Tag.Get("json")
		if f.Type.Kind() == reflect.Struct && strings.HasSuffix(f.Type.Name(), "Pointers") {
			maps.Copy(keys, typeKeys(f.Type, name+"."))
			continue
		}
		keys[name] = f.Tag.Get("default")
	}
	return keys
}

// shownKeys lists the keys of an example's config, with their values.
func shownKeys(config map[string]json.RawMessage, path string) map[string]string {
	keys := map[string]string{}
	for key, value := range config {
		var table map[string]json.RawMessage
		if key == "pointers" && json.Unmarshal(value, &table) == nil {
			maps.Copy(keys, shownKeys(table, path+key+"."))
			continue
		}
		keys[path+key] = strings.Trim(string(value), `"`)
	}
	return keys
}

func sorted(keys map[string]string) (all []string) {
	for k := range keys {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func TestTheExampleFileShowsEveryType(t *testing.T) {
	text, err := os.ReadFile("../config.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "leasehold.toml")
	uncommented := regexp.MustCompile(`(?m)^# (\[[a-z_.\[\]]+\]|[a-z_]+ = .*)$`).ReplaceAll(text, []byte("$1"))
	if err := os.WriteFile(file, uncommented, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program{Options: Options{Types: Builtin()}, configFile: file}
	c, err := p.load()
	if err != nil {
		t.Fatalf("got faults, want none:\n%v", err)
	}
	resolve := func(string, string) (string, error) { return "a-secret-of-the-example", nil }
	for _, spec := range Builtin() {
		t.Run(spec.Name, func(t *testing.T) {
			i := slices.IndexFunc(c.Installations, func(i config.Installation) bool { return i.Type == spec.Name })
			if i < 0 {
				t.Fatalf("got no installation of type %s, want one with every key", spec.Name)
			}
			raw := c.Installations[i].Config
			built(t, spec, raw, resolve)
			var shown map[string]json.RawMessage
			if err := json.Unmarshal(raw, &shown); err != nil {
				t.Fatal(err)
			}
			got, want := shownKeys(shown, ""), typeKeys(spec.Config, "")
			if !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("got keys %q, want %q", sorted(got), sorted(want))
			}
			for key, def := range want {
				if def != "" && got[key] != def {
					t.Errorf("%s: got the default %s, want %s", key, got[key], def)
				}
			}
		})
	}
}

// built wants a config that a channel can be built of.
func built(t *testing.T, spec channel.Spec, raw json.RawMessage, resolve channel.Resolver) {
	t.Helper()
	decoded, err := spec.Decode(raw, resolve)
	if err != nil {
		t.Fatalf("got %v, want a config that decodes", err)
	}
	if _, err := decoded.Build(t.Context()); err != nil {
		t.Errorf("got %v, want a config to build", err)
	}
}

func TestEveryFakeSpeaksToItsType(t *testing.T) {
	for _, f := range fakes() {
		i := slices.IndexFunc(Builtin(), func(s channel.Spec) bool { return s.Name == f.name })
		if i < 0 {
			t.Fatalf("got a fake of %s, want a type of that name", f.name)
		}
		x := f.open(func(string, string) {})
		built(t, Builtin()[i], x.Config(f.scheme+"://127.0.0.1:1", fakeBot, nil), nil)
		x.Close()
	}
}
