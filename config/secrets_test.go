package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	symlink := func(to, name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := NewSecrets([]string{"TOKEN=hunter2", "EMPTY=", "CREDENTIALS_DIRECTORY=" + filepath.Join(dir, "creds")})
	s.run = filepath.Join(dir, "run")

	private := write("private", "hunter2\n", 0o600)
	group := write("group", "hunter2", 0o640)
	world := write("world", "hunter2", 0o644)
	write("creds/acme", "hunter2\r\n\n", 0o444)
	mounted := write("run/acme", "hunter2", 0o444)
	viaLink := symlink(filepath.Join(dir, "run"), "link")
	write("volume/..2026/acme", "hunter2", 0o644)
	symlink("..2026", "volume/..data")
	projected := symlink("..data/acme", "volume/acme")
	empty := write("empty", "\n", 0o600)
	large := write("large", strings.Repeat("x", secretLimit+1), 0o600)
	binary := write("binary", "a\xff", 0o600)
	outside := symlink(world, "run2/acme")

	for _, c := range []struct{ name, kind, ref, want string }{
		{"a variable", "env", "TOKEN", "hunter2"},
		{"a variable that is not set", "env", "NONE", "environment variable NONE is not set; set it for the service and restart"},
		{"a variable that is empty", "env", "EMPTY", "environment variable EMPTY is not set; set it for the service and restart"},
		{"a private file, without its newline", "file", private, "hunter2"},
		{"a file that the own group reads", "file", group, "hunter2"},
		{"a file that everybody reads", "file", world, "secret file " + world + " can be read by everybody (mode 0644); run chmod 600 " + world},
		{"a file that everybody writes", "file", write("writable", "hunter2", 0o602), "secret file " + dir + "/writable can be read by everybody (mode 0602); run chmod 600 " + dir + "/writable"},
		{"a link to a file that everybody reads", "file", outside, "secret file " + outside + " can be read by everybody (mode 0644); run chmod 600 " + outside},
		{"a credential", "credential", "acme", "hunter2"},
		{"a file in the credentials folder", "file", filepath.Join(dir, "creds/acme"), "hunter2"},
		{"a file that the container mounts", "file", mounted, "hunter2"},
		{"a mounted file through a link to the folder", "file", filepath.Join(viaLink, "acme"), "hunter2"},
		{"a projected volume", "file", projected, "hunter2"},
		{"a path out of the mounted folder", "file", s.run + "/../world", "secret file " + s.run + "/../world can be read by everybody (mode 0644); run chmod 600 " + s.run + "/../world"},
		{"a credential outside its folder", "credential", "../private", "a credential is the name of a file in $CREDENTIALS_DIRECTORY, without a folder"},
		{"a credential that is the folder", "credential", "..", "a credential is the name of a file in $CREDENTIALS_DIRECTORY, without a folder"},
		{"a credential that is not there", "credential", "none", "secret file " + dir + "/creds/none: no such file or directory"},
		{"a file that is not there", "file", dir + "/none", "secret file " + dir + "/none: no such file or directory"},
		{"a folder", "file", dir, "secret file " + dir + " is not a file"},
		{"an empty file", "file", empty, "secret file " + empty + " is empty"},
		{"a file that is too large", "file", large, "secret file " + large + " is larger than 64 KiB"},
		{"a file that is not text", "file", binary, "secret file " + binary + " is not UTF-8 text"},
		{"a reference of a later version", "command", "x", "secrets by command are not in this version; use env, file or credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.Resolve(c.kind, c.ref)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}

	t.Run("a file that another group reads", func(t *testing.T) {
		other := *s
		other.gids = nil
		want := "secret file " + group + " can be read by a group that leasehold is not in (mode 0640); run chmod 600 " + group
		if _, err := other.Resolve("file", group); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("a credential without a credentials folder", func(t *testing.T) {
		want := "credential acme: CREDENTIALS_DIRECTORY is not set; add LoadCredential=acme:PATH to the systemd unit"
		if _, err := NewSecrets(nil).Resolve("credential", "acme"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("a file is read each time, a variable never again", func(t *testing.T) {
		write("private", "rotated", 0o600)
		if got, err := s.Resolve("file", private); got != "rotated" || err != nil {
			t.Errorf("got %q, %v; want the new secret", got, err)
		}
	})
	t.Run("a literal value needs no resolver", func(t *testing.T) {
		if got, err := (Value{Literal: "plain"}).Resolve(nil); got != "plain" || err != nil {
			t.Errorf("got %q, %v; want plain", got, err)
		}
	})
}

// A secret that a person pasted into a wrong place must not come out in what we
// say about it. The name of an installation or a target is shown; it is no place
// for a secret.
func TestNoFaultShowsAValue(t *testing.T) {
	const secret = "xoxb-hunter2-hunter2"
	names := map[string]bool{"target.name": true, "target.type": true, "installation.id": true, "installation.type": true, "installation.via": true}
	seen := 0
	check := func(t *testing.T, what string, faults []string) {
		t.Helper()
		for _, f := range faults {
			seen++
			if strings.Contains(f, secret) {
				t.Errorf("%s: got %s, want it without the value", what, f)
			}
		}
	}
	values := []string{`"` + secret + `"`, `["` + secret + `"]`, `{ x = "` + secret + `" }`, `{ env = "` + secret + `" }`, `'''` + "\n" + secret + `'''`, `"` + secret + `" x`, `"` + secret, secret}

	for path := range typePaths() {
		table, key := path[:max(0, strings.LastIndex(path, "."))], path[strings.LastIndex(path, ".")+1:]
		if names[path] || strings.HasSuffix(path, "targets") {
			continue
		}
		for _, v := range values {
			text := "[" + table + "]\n" + key + " = " + v + "\n"
			switch {
			case table == "target":
				text = "[[target]]\nname = \"a\"\ntype = \"http\"\n" + key + " = " + v + "\n"
			case table == "installation":
				text = "[[installation]]\nid = \"a\"\ntype = \"socket\"\n" + key + " = " + v + "\n"
			case strings.HasPrefix(table, "installation.config"):
				text = "[[installation]]\nid = \"a\"\ntype = \"socket\"\n[" + table + "]\n" + key + " = " + v + "\n"
			}
			check(t, text, faultsIn(t, map[string]string{"leasehold.toml": text}))
		}
		if table != "target" && !strings.HasPrefix(table, "installation") {
			check(t, path, faultsIn(t, nil, envName(path)+"="+secret))
		}
	}
	if seen < 300 {
		t.Errorf("got %d faults looked at, want hundreds", seen)
	}
}

// typePaths are the paths of all keys, those of a channel type included.
func typePaths() map[string]bool {
	paths := map[string]bool{}
	add := func(path string, _ field, _ bool) { paths[path] = true }
	keysOf(configType, "", false, add)
	keysOf(testTypes["socket"], "installation.config", false, add)
	paths["installation.config.headers.Authorization"] = true
	paths["target.headers.Cookie"] = true
	paths["node.unknown"] = true
	return paths
}
