package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The config structs of made-up channel types, with every kind of field that one
// may have.

type testSecret struct{ value string }

func (s testSecret) Reveal() string { return s.value }

type testText struct{ value string }

func (t testText) Reveal() string { return t.value }
func (t testText) MaybeSecret()   {}

type testSpan time.Duration

func (d *testSpan) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s", string(b))
	}
	*d = testSpan(v)
	return nil
}

type testJSON struct{ v int }

func (j *testJSON) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &j.v) }

type testRule struct {
	Pointer string `json:"pointer" channel:"required"`
	Weight  uint8  `json:"weight"`
}

type socketConfig struct {
	URL       string              `json:"url" channel:"required,connection"`
	AppToken  testSecret          `json:"app_token" channel:"connection"`
	Pin       string              `json:"pin" channel:"secret"`
	Headers   map[string]testText `json:"headers"`
	PingEvery testSpan            `json:"ping_every" default:"30s" positive:"true"`
	Idle      testSpan            `json:"idle"`
	Mode      string              `json:"mode" oneof:"text binary" later:"both"`
	Retries   *int                `json:"retries" min:"0" max:"9"`
	Ratio     float64             `json:"ratio"`
	Small     float32             `json:"small"`
	Flags     []bool              `json:"flags"`
	Rules     []testRule          `json:"rules"`
	TLS       struct {
		Name string `json:"name" channel:"required"`
		Skip bool   `json:"skip"`
	} `json:"tls"`
	Shape  testJSON       `json:"shape"`
	Free   map[string]any `json:"free,omitempty"`
	Any    any            `json:"any"`
	Hidden string
}

// slackConfig has keys of the connection and keys of a rider.
type slackConfig struct {
	AppToken testSecret `json:"app_token" channel:"required,connection"`
	BotToken testSecret `json:"bot_token" channel:"required"`
	TeamID   string     `json:"team_id"`
}

type heartbeatConfig struct {
	Every testSpan `json:"every" default:"1m"`
}

var testTypes = map[string]reflect.Type{
	"heartbeat": reflect.TypeFor[heartbeatConfig](),
	"slack":     reflect.TypeFor[slackConfig](),
	"socket":    reflect.TypeFor[socketConfig](),
	"bare":      nil,
}

// testHost is a machine of which everything is known.
func testHost(dir string, env ...string) host {
	return host{
		goos: "linux", root: true, name: "gw-117", cwd: dir, system: "/etc/leasehold",
		vars: readEnv(append([]string{"HOME=/nobody"}, env...), "linux"),
	}
}

func testSource(dir string) Source {
	return Source{
		Dir:       dir,
		Types:     func(name string) (reflect.Type, bool) { t, ok := testTypes[name]; return t, ok },
		TypeNames: []string{"heartbeat", "slack", "socket", "bare"},
	}
}

// loadFiles loads files, by name, from a folder of their own.
func loadFiles(t testing.TB, files map[string]string, env ...string) (*Config, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := load(testSource(dir), testHost(dir, env...))
	return c, dir, err
}

// mustLoad loads one file that has no fault.
func mustLoad(t testing.TB, text string, env ...string) *Config {
	t.Helper()
	c, _, err := loadFiles(t, map[string]string{"leasehold.toml": text}, env...)
	if err != nil {
		t.Fatalf("got faults, want none:\n%v", err)
	}
	return c
}

// faultsIn returns the faults of files, without the folder they are in.
func faultsIn(t testing.TB, files map[string]string, env ...string) []string {
	t.Helper()
	c, dir, err := loadFiles(t, files, env...)
	if err == nil {
		return nil
	}
	var faults Faults
	if !errors.As(err, &faults) || c != nil {
		t.Fatalf("got config %v and error %T, want none and Faults", c, err)
	}
	return strings.Split(strings.ReplaceAll(faults.Error(), dir+"/", ""), "\n")
}

// sameLines compares two lists and shows where they part.
func sameLines(t testing.TB, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, g, w)
		}
	}
}
