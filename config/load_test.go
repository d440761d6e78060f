package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	t.Run("no file at all is the default, with the machine's own places", func(t *testing.T) {
		c, dir, err := loadFiles(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Default()
		want.Node.Name, want.Node.DataDir, want.Admin.Socket = "gw-117", "/var/lib/leasehold", "/run/leasehold/leasehold.sock"
		if !reflect.DeepEqual(c, want) {
			t.Errorf("in %s got %+v, want %+v", dir, c, want)
		}
	})

	t.Run("every kind of value arrives where it belongs", func(t *testing.T) {
		c, dir, err := loadFiles(t, map[string]string{"leasehold.toml": `
delivery.concurrency = 0x10
[node]
name = "box"
data_dir = "data"
labels.site = "berlin"
labels.rack = "4"
[connect]
per_type_rate = 5
in_flight = 1_000
no_proxy = [
  "a", # one
  "b",
]
proxy = { credential = "proxy" }
ca_file = "ca.pem"
[retention]
events = "1d12h"
[[target]]
name = "app"
type = "http"
url = "https://example.org/events?x=1"
raw = false
events = ["*"]
headers = { Authorization = { file = "auth" }, X-Site = "berlin" }
[[target]]
name = "log"
type = "log"
[[installation]]
id = "acme"
type = "bare"
enabled = false
targets = []
[[installation]]
id = "rider"
type = "bare"
via = "acme"
`})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			what      string
			got, want any
		}{
			{"delivery.concurrency", c.Delivery.Concurrency, 16},
			{"node.name", c.Node.Name, "box"},
			{"node.data_dir", c.Node.DataDir, Path(dir + "/data")},
			{"admin.socket", c.Admin.Socket, Path(dir + "/data/leasehold.sock")},
			{"node.labels", c.Node.Labels, map[string]string{"site": "berlin", "rack": "4"}},
			{"connect.per_type_rate", c.Connect.PerTypeRate, 5.0},
			{"connect.in_flight", c.Connect.InFlight, 1000},
			{"connect.no_proxy", c.Connect.NoProxy, []string{"a", "b"}},
			{"connect.proxy", c.Connect.Proxy, Value{Reference: Reference{"credential", "proxy"}}},
			{"connect.ca_file", c.Connect.CAFile, Path(dir + "/ca.pem")},
			{"retention.events", c.Retention.Events.String(), "1d12h"},
			{"target app", c.Targets[0], Target{
				Name: "app", Type: "http", URL: "https://example.org/events?x=1", Events: []string{"*"},
				Timeout: 30e9, MaxAge: 86400e9, MaxAttempts: 12, Order: "conversation", Concurrency: 32, OnFailure: "skip", Replies: true, Batch: 1,
				Headers: map[string]Value{"Authorization": {Reference: Reference{"file", dir + "/auth"}}, "X-Site": {Literal: "berlin"}},
				Pos:     Pos{dir + "/leasehold.toml", 19, 3},
			}},
			{"target log", c.Targets[1].Events, []string{"*"}},
			{"delivery.targets", c.Delivery.Targets, []string{"app", "log"}},
			{"installation acme", c.Installations[0], Installation{
				ID: "acme", Type: "bare", Interactions: "defer", Targets: []string{}, Config: json.RawMessage("{}"), Pos: Pos{dir + "/leasehold.toml", 29, 3},
			}},
			{"installation rider", c.Installations[1], Installation{
				ID: "rider", Type: "bare", Interactions: "defer", Via: "acme", Enabled: true, Config: json.RawMessage("{}"), Pos: Pos{dir + "/leasehold.toml", 34, 3},
			}},
			{"files", c.Files, []string{dir + "/leasehold.toml"}},
			{"uses", c.Uses, []Use{
				{Pos{dir + "/leasehold.toml", 15, 9}, "connect.proxy", Reference{"credential", "proxy"}},
				{Pos{dir + "/leasehold.toml", 25, 29}, `target "app": headers.Authorization`, Reference{"file", dir + "/auth"}},
			}},
		} {
			if !reflect.DeepEqual(x.got, x.want) {
				t.Errorf("%s: got %#v, want %#v", x.what, x.got, x.want)
			}
		}
	})

	t.Run("a type's config becomes JSON with references kept and keys sorted", func(t *testing.T) {
		text := `[[installation]]
id = "acme"
type = "socket"
[installation.config]
url = "ws://h/?a=1&b=<2>"
ratio = 2
small = 0.5
retries = 3
mode = "text"
ping_every = "15s"
flags = [true, false]
shape = 7
any = 2026-11-30
app_token = { env = "ACME" }
pin = { file = "sub/../pin" }
headers = { Z = "z", A = { credential = "a" }, Cookie = { env = "C" }, Authorization = "Bearer {{token}}" }
rules = [{ pointer = "/id", weight = 255 }]
tls = { name = "h" }
free = { n = [1, 0x1F, { x = 1.5 }], s = 'raw\' }
`
		c, dir, err := loadFiles(t, map[string]string{"leasehold.toml": text})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"any":"2026-11-30","app_token":{"env":"ACME"},"flags":[true,false],"free":{"n":[1,31,{"x":1.5}],"s":"raw\\"},` +
			`"headers":{"A":{"credential":"a"},"Authorization":"Bearer {{token}}","Cookie":{"env":"C"},"Z":"z"},"mode":"text","pin":{"file":"` + dir + `/pin"},` +
			`"ping_every":"15s","ratio":2,"retries":3,"rules":[{"pointer":"/id","weight":255}],"shape":7,"small":0.5,` +
			`"tls":{"name":"h"},"url":"ws://h/?a=1&b=<2>"}`
		if got := string(c.Installations[0].Config); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got, want := len(c.Uses), 4; got != want {
			t.Errorf("got %d uses of secrets, want %d", got, want)
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Reverse(lines[4:])
		if again, _, err := loadFiles(t, map[string]string{"leasehold.toml": strings.Join(lines, "\n")}); err != nil {
			t.Error(err)
		} else if got := strings.ReplaceAll(string(again.Installations[0].Config), filepath.Dir(again.Files[0]), dir); got != want {
			t.Errorf("keys in another order: got %s, want the same JSON", got)
		}
	})

	t.Run("a rider needs no key of the connection", func(t *testing.T) {
		mustLoad(t, `
[[installation]]
id = "acme"
type = "slack"
config = { app_token = { env = "A" }, bot_token = { env = "B" } }
[[installation]]
id = "team"
type = "slack"
via = "acme"
config = { bot_token = { env = "C" }, team_id = "T1" }
`)
	})

	t.Run("without Types no config is checked", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.toml"), []byte("[[installation]]\nid=\"a\"\ntype=\"any\"\nconfig={b={c=1}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Source{Path: "x.toml", Dir: dir, Env: []string{"HOME=/nobody"}})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(c.Installations[0].Config), `{"b":{"c":1}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})

	t.Run("a byte order mark and CRLF do no harm", func(t *testing.T) {
		if got := mustLoad(t, "\ufeff[node]\r\nname = \"a\"\r\n").Node.Name; got != "a" {
			t.Errorf("got %q, want a", got)
		}
	})
}

func TestMatch(t *testing.T) {
	want := Match{
		"conversation.id": {"C02", "C03"}, "addressed": {"true"}, "device.qos": {"1"}, "installation.labels.site.name": {"berlin"},
		"raw/event/type": {"app*"}, "text": {"deploy*"},
	}
	for name, text := range map[string]string{
		"quoted in one line": `match = { "conversation.id" = ["C02", "C03"], addressed = true, "device.qos" = 0x1, "installation.labels.site.name" = "berlin", "raw/event/type" = "app*", text = "deploy*" }`,
		"as tables": `[target.match]
conversation.id = ["C02", "C03"]
addressed = true
device.qos = 1
installation.labels.site.name = "berlin"
raw."/event/type" = "app*"
text = "deploy*"`,
	} {
		t.Run(name+" it says the same", func(t *testing.T) {
			c := mustLoad(t, "[[target]]\nname = \"a\"\ntype = \"log\"\n"+text+"\n")
			if got := c.Targets[0].Match; !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if err := c.Validate(); err != nil {
				t.Errorf("got %v, want no fault", err)
			}
		})
	}
}

func TestFilesTogether(t *testing.T) {
	c, dir, err := loadFiles(t, map[string]string{
		"leasehold.toml": `
[node]
name = "one"
labels = { a = "1", b = "1" }
[delivery]
targets = ["t1"]
[[target]]
name = "t1"
type = "log"
events = ["x"]
`,
		"conf.d/20.toml": `
[node]
name = "three"
[[installation]]
id = "i2"
type = "bare"
`,
		"conf.d/10.toml": `
[node]
name = "two"
labels = { b = "2" }
[delivery]
targets = ["t2"]
[[target]]
name = "t2"
type = "log"
[[installation]]
id = "i1"
type = "bare"
`,
		"conf.d/.hidden.toml": "x = 1\n",
		"conf.d/README":       "not TOML\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{c.Installations[0].ID, c.Installations[1].ID}
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"a scalar of a later file wins", c.Node.Name, "three"},
		{"tables grow by key", c.Node.Labels, map[string]string{"a": "1", "b": "2"}},
		{"lists append", c.Delivery.Targets, []string{"t1", "t2"}},
		{"a list in an element stays its own", c.Targets[0].Events, []string{"x"}},
		{"elements append in the order of the names", ids, []string{"i1", "i2"}},
		{"files are listed as read", c.Files, []string{dir + "/leasehold.toml", dir + "/conf.d/10.toml", dir + "/conf.d/20.toml"}},
		{"a position names its file", c.Installations[1].Pos.String(), dir + "/conf.d/20.toml:4"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if !reflect.DeepEqual(x.got, x.want) {
				t.Errorf("got %#v, want %#v", x.got, x.want)
			}
		})
	}

	t.Run("an id or a name in two files is a fault that names both places", func(t *testing.T) {
		got := faultsIn(t, map[string]string{
			"leasehold.toml": "[[target]]\nname=\"t\"\ntype=\"log\"\n[[installation]]\nid=\"i\"\ntype=\"bare\"\n",
			"conf.d/a.toml":  "[[installation]]\nid=\"i\"\ntype=\"bare\"\n[[target]]\nname=\"t\"\ntype=\"log\"\n",
		})
		sameLines(t, got, []string{
			`conf.d/a.toml:2:4: installation "i": id: is defined twice, first at leasehold.toml:4`,
			`conf.d/a.toml:5:6: target "t": name: is defined twice, first at leasehold.toml:1`,
		})
	})
}

func TestStoreURL(t *testing.T) {
	secrets := NewSecrets([]string{"DB=sqlite:/abs/x.db", "PG=postgres://u:hunter2@h/d"})
	for _, c := range []struct {
		name, want string
		url        Value
	}{
		{"relative to the data folder", "sqlite:/data/leasehold.db", Value{Literal: "sqlite:leasehold.db"}},
		{"absolute", "sqlite:/var/x.db", Value{Literal: "sqlite:/var/x.db"}},
		{"absolute after //", "sqlite:/var/x.db", Value{Literal: "sqlite:///var/x.db"}},
		{"by reference", "sqlite:/abs/x.db", Value{Reference: Reference{"env", "DB"}}},
		{"postgres by reference", `postgres://u:hunter2@h/d`, Value{Reference: Reference{"env", "PG"}}},
		{"a reference that does not resolve", "store.url: environment variable NO is not set; set it for the service and restart", Value{Reference: Reference{"env", "NO"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Default()
			cfg.Node.DataDir, cfg.Store.URL = "/data", c.url
			got, err := cfg.StoreURL(secrets.Resolve)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestValidateOfCode(t *testing.T) {
	c := Default()
	c.Retention.Audit = -1
	c.Lease.TTL = Duration(-5e9)
	c.Delivery.Targets = []string{"none"}
	c.Targets = []Target{{Name: "a", Type: "log", URL: "http://h", Timeout: -5e9, MaxAge: 1, MaxAttempts: 1, Order: "none", Concurrency: 1, OnFailure: "hold", Batch: 1}}
	c.Installations = []Installation{{ID: "x", Type: "t", Interactions: "defer"}, {ID: "x", Type: "t", Interactions: "defer"}, {Interactions: "defer"}}
	err := c.Validate()
	if err == nil {
		t.Fatal("got no fault, want several")
	}
	sameLines(t, strings.Split(err.Error(), "\n"), []string{
		`lease.ttl: must be positive (got -5s)`,
		`target "a": timeout: must be positive (got -5s)`,
		`installation #3: id: is missing`,
		`installation #3: type: is missing`,
		`retention.audit: must be positive (got -1ns)`,
		`installation "x": id: is defined twice`,
		`delivery.targets: target "none" is not defined (one of a)`,
		`target "a": url: does not go with type = "log" (remove it)`,
	})
}

func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "[[installation]]\nid = \"i%d\"\ntype = \"slack\"\nconfig = { app_token = { env = \"A\" }, bot_token = { env = \"B\" } }\n", i)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "leasehold.toml"), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := load(testSource(dir), testHost(dir)); err != nil {
			b.Fatal(err)
		}
	}
}
