package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

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
