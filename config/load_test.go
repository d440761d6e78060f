package config

import (
	"encoding/json"
	"errors"
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

func TestEnvironment(t *testing.T) {
	t.Run("a variable sets a key of any type, over the files", func(t *testing.T) {
		c, dir, err := loadFiles(t, map[string]string{"leasehold.toml": "[node]\nname = \"file\"\n[connect]\nno_proxy = [\"x\"]\n"},
			"LEASEHOLD_NODE_NAME=env", "LEASEHOLD_NODE_LABELS=a=1, b=2=3", "LEASEHOLD_NODE_DATA_DIR=rel", "LEASEHOLD_STORE_URL=sqlite:e.db",
			"LEASEHOLD_TASKS_SWEEPER_EVERY=2h", "LEASEHOLD_TASKS_SELF_AUDIT_EVERY=1d", "LEASEHOLD_STORE_FORCE_NETWORK_FS=true",
			"LEASEHOLD_CONNECT_PER_TYPE_RATE=0.5", "LEASEHOLD_CONNECT_IN_FLIGHT=7", "LEASEHOLD_CONNECT_NO_PROXY=a, b,",
			"LEASEHOLD_LOG_LEVEL=", "OTHER=x", "LEASEHOLD_NODE_NAME=last")
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			what      string
			got, want any
		}{
			{"a name that is there twice", c.Node.Name, "last"},
			{"labels", c.Node.Labels, map[string]string{"a": "1", "b": "2=3"}},
			{"a path", c.Node.DataDir, Path(dir + "/rel")},
			{"store.url", c.Store.URL.Literal, "sqlite:e.db"},
			{"a nested key", c.Tasks.Sweeper.Every.String(), "2h"},
			{"a name with an underscore", c.Tasks.SelfAudit.Every.String(), "1d"},
			{"a boolean", c.Store.ForceNetworkFS, true},
			{"a rate", c.Connect.PerTypeRate, 0.5},
			{"a number", c.Connect.InFlight, 7},
			{"a list replaces the file's", c.Connect.NoProxy, []string{"a", "b"}},
			{"an empty variable is not set", c.Log.Level, "info"},
		} {
			if !reflect.DeepEqual(x.got, x.want) {
				t.Errorf("%s: got %#v, want %#v", x.what, x.got, x.want)
			}
		}
	})

	for _, c := range []struct{ name, env, want string }{
		{"not a number", "LEASEHOLD_CONNECT_IN_FLIGHT=many", `environment: LEASEHOLD_CONNECT_IN_FLIGHT: must be a whole number`},
		{"a number that no machine holds", "LEASEHOLD_CONNECT_IN_FLIGHT=99999999999999999999", `environment: LEASEHOLD_CONNECT_IN_FLIGHT: is out of range`},
		{"not a rate", "LEASEHOLD_CONNECT_PER_TYPE_RATE=fast", `environment: LEASEHOLD_CONNECT_PER_TYPE_RATE: must be a number`},
		{"an endless rate", "LEASEHOLD_CONNECT_PER_TYPE_RATE=inf", `environment: LEASEHOLD_CONNECT_PER_TYPE_RATE: is out of range`},
		{"not a boolean", "LEASEHOLD_STORE_FORCE_NETWORK_FS=maybe", `environment: LEASEHOLD_STORE_FORCE_NETWORK_FS: must be true or false`},
		{"not labels", "LEASEHOLD_NODE_LABELS=berlin", `environment: LEASEHOLD_NODE_LABELS: must be a list such as key=value,key=value`},
		{"a label twice", "LEASEHOLD_NODE_LABELS=a=1,a=2", `environment: LEASEHOLD_NODE_LABELS: must be a list such as key=value,key=value`},
		{"a bound", "LEASEHOLD_CONNECT_IN_FLIGHT=0", `environment: LEASEHOLD_CONNECT_IN_FLIGHT: must be at least 1 (got 0)`},
		{"a word", "LEASEHOLD_LOG_FORMAT=jsno", `environment: LEASEHOLD_LOG_FORMAT: must be "auto", "json" or "text" (did you mean "json"?)`},
		{"a target that is not there", "LEASEHOLD_DELIVERY_TARGETS=app", `environment: LEASEHOLD_DELIVERY_TARGETS: target "app" is not defined (there is no [[target]])`},
		{"half a postgres url", "LEASEHOLD_STORE_URL=postgres:u:hunter2@h/d", `environment: LEASEHOLD_STORE_URL: is no URL (such as "postgres://leasehold@db.example.org/leasehold?sslmode=verify-full")`},
		{"an unsafe lease", "LEASEHOLD_LEASE_TTL=10s", `environment: LEASEHOLD_LEASE_TTL: unsafe: attempt_timeout 3s leaves no room for another attempt after one that hangs; it must be less than 990ms, half of what renew_every 5s leaves of 6.98s of trust (ttl 10s less 0.2 % clock error less margin 3s) (lower attempt_timeout or raise ttl)`},
		{"an unknown variable", "LEASEHOLD_STORE_ULR=x", `environment: LEASEHOLD_STORE_ULR: is not a key of the config (did you mean LEASEHOLD_STORE_URL?)`},
		{"a variable without its table", "LEASEHOLD_DATA_DIR=/x", `environment: LEASEHOLD_DATA_DIR: is not a key of the config (did you mean LEASEHOLD_NODE_DATA_DIR?)`},
		{"a variable of a target", "LEASEHOLD_TARGET_APP_URL=x", `environment: LEASEHOLD_TARGET_APP_URL: is not a key of the config (targets and installations are set in a file)`},
		{"a variable that nothing is close to", "LEASEHOLD_ZZZ=x", `environment: LEASEHOLD_ZZZ: is not a key of the config`},
	} {
		t.Run(c.name, func(t *testing.T) { sameLines(t, faultsIn(t, nil, c.env), []string{c.want}) })
	}

	t.Run("a variable that a reference names is no unknown key", func(t *testing.T) {
		mustLoad(t, "[connect]\nproxy = { env = \"LEASEHOLD_PROXY_URL\" }\n", "LEASEHOLD_PROXY_URL=http://u:p@h")
	})
}

func TestWhichFileIsRead(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("[node]\nname = \""+name+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	load := func(path string, env ...string) (string, error) {
		h := testHost(filepath.Join(dir, "cwd"), append([]string{"HOME=" + filepath.Join(dir, "home")}, env...)...)
		h.system = filepath.Join(dir, "etc")
		src := testSource(h.cwd)
		src.Path = path
		c, err := load(src, h)
		if err != nil {
			return "", err
		}
		return c.Node.Name, nil
	}
	// From the last place to the first: each wins over those before it.
	for _, step := range []struct{ name, file, path, env string }{
		{"only conf.d in the system's folder", "etc/conf.d/a.toml", "", ""},
		{"the system's file", "etc/leasehold.toml", "", ""},
		{"only conf.d in the user's folder", "home/.config/leasehold/conf.d/a.toml", "", ""},
		{"the user's file", "home/.config/leasehold/leasehold.toml", "", ""},
		{"the user's folder by its variable", "xdg/leasehold/leasehold.toml", "", "XDG_CONFIG_HOME=" + filepath.Join(dir, "xdg")},
		{"the working folder", "cwd/leasehold.toml", "", ""},
		{"the variable", "env.toml", "", "LEASEHOLD_CONFIG=../env.toml"},
		{"the flag", "flag.toml", "../flag.toml", "LEASEHOLD_CONFIG=../env.toml"},
	} {
		t.Run(step.name, func(t *testing.T) {
			put(step.file)
			want := step.file
			if step.name == "the system's file" || step.name == "the user's file" {
				want = strings.Replace(want, "leasehold.toml", "conf.d/a.toml", 1) // read after it
			}
			got, err := load(step.path, step.env)
			if err != nil || got != want {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}

	t.Run("conf.d alone in the working folder is somebody else's", func(t *testing.T) {
		c, _, err := loadFiles(t, map[string]string{"conf.d/a.toml": "[node]\nname = \"x\"\n"})
		if err != nil || len(c.Files) != 0 {
			t.Errorf("got %v, %v; want no file read", c, err)
		}
	})

	for _, c := range []struct{ name, path, env, want string }{
		{"a file that is not there", "no.toml", "", "no.toml: no such file or directory (named by --config)"},
		{"a folder", ".", "", ".: is a folder (named by --config; name the file in it)"},
		{"a variable's file that is not there", "", "LEASEHOLD_CONFIG=no.toml", "no.toml: no such file or directory (named by LEASEHOLD_CONFIG)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(c.path, c.env)
			var faults Faults
			if !errors.As(err, &faults) || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}

	t.Run("a pipe is not waited for", func(t *testing.T) {
		if _, err := load("/dev/null"); err == nil || err.Error() != "/dev/null: is not a file" {
			t.Errorf("got %v, want: is not a file", err)
		}
	})

	t.Run("a file that is too large is refused", func(t *testing.T) {
		path := put("big.toml")
		if err := os.Truncate(path, fileLimit+1); err != nil {
			t.Fatal(err)
		}
		if _, err := load(path); err == nil || !strings.HasSuffix(err.Error(), "is larger than 16 MiB") {
			t.Errorf("got %v, want: is larger than 16 MiB", err)
		}
	})
}

func TestPlacesOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		name, goos, env    string
		root               bool
		user, data, socket string
	}{
		{"linux, root", "linux", "HOME=/root", true, "/root/.config/leasehold", "/var/lib/leasehold", "/run/leasehold"},
		{"linux, a user", "linux", "HOME=/h", false, "/h/.config/leasehold", "/h/.local/share/leasehold", ""},
		{"linux, a user's own folders", "linux", "HOME=/h XDG_CONFIG_HOME=/c XDG_DATA_HOME=/d XDG_RUNTIME_DIR=/r", false, "/c/leasehold", "/d/leasehold", "/r/leasehold"},
		{"linux, relative folders do not count", "linux", "HOME=/h XDG_CONFIG_HOME=c XDG_DATA_HOME=d XDG_RUNTIME_DIR=r", false, "/h/.config/leasehold", "/h/.local/share/leasehold", ""},
		{"systemd's folders", "linux", "HOME=/h STATE_DIRECTORY=/s:/s2 RUNTIME_DIRECTORY=/rt", false, "/h/.config/leasehold", "/s", "/rt"},
		{"macOS, root", "darwin", "HOME=/h", true, "/h/Library/Application Support/leasehold", "/Library/Application Support/leasehold", ""},
		{"macOS, a user", "darwin", "HOME=/h", false, "/h/Library/Application Support/leasehold", "/h/Library/Application Support/leasehold", ""},
		{"no home", "linux", "", false, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := host{goos: c.goos, root: c.root, vars: readEnv(strings.Fields(c.env), c.goos)}
			if got, want := [...]string{h.user(), h.data(), h.runtimeFolder()}, [...]string{c.user, c.data, c.socket}; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}

	t.Run("without any folder for data it says what to set", func(t *testing.T) {
		h := testHost("/")
		h.root, h.vars = false, variables{}
		_, err := load(testSource(""), h)
		if want := "environment: node.data_dir: no folder for data is known (set node.data_dir, or HOME)"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})

	t.Run("windows", func(t *testing.T) {
		// With paths of this system: only it can tell whether one is absolute.
		vars := readEnv([]string{"AppData=/a", "localappdata=/l", "PROGRAMDATA=/p"}, "windows")
		h := host{goos: "windows", vars: vars}
		if got, want := [...]string{h.user(), h.data(), h.runtimeFolder()}, [...]string{"/a/leasehold", "/l/leasehold", ""}; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		delete(vars, "LOCALAPPDATA")
		if got, want := h.data(), "/p/leasehold/data"; got != want {
			t.Errorf("without a user's folder: got %q, want %q", got, want)
		}
	})

	t.Run("this machine has places", func(t *testing.T) {
		h, err := thisHost(Source{Env: []string{"HOME=/h"}})
		if err != nil || h.name == "" || !filepath.IsAbs(h.cwd) || h.system == "" {
			t.Errorf("got %+v, %v; want a name and absolute folders", h, err)
		}
		if h, _ = thisHost(Source{Env: []string{"CONFIGURATION_DIRECTORY=/c"}}); h.system != "/c" {
			t.Errorf("got %s, want the service manager's folder", h.system)
		}
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
