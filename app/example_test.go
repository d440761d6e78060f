package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
			built(t, spec, withFiles(t, raw), resolve)
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

// withFiles has an example's files be there: a certificate and its key.
func withFiles(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	for name := range config {
		if !strings.HasSuffix(name, "_file") {
			continue
		}
		block := &pem.Block{Type: "CERTIFICATE", Bytes: cert}
		if name == "key_file" {
			block = &pem.Block{Type: "PRIVATE KEY", Bytes: secret}
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		config[name] = file
	}
	raw, err = json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
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
		x := f.open(func(string, string, string) {})
		built(t, Builtin()[i], x.Config(f.scheme+"://127.0.0.1:1", fakeBot, nil), nil)
		x.Close()
	}
}
