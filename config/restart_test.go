package config

import (
	"os"
	"reflect"
	"slices"
	"testing"
)

func TestFollow(t *testing.T) {
	const old = `
[node]
name = "box"
labels = { site = "a" }
[store]
url = "sqlite:one.db"
[lease]
ttl = "30s"
[delivery]
targets = ["log"]
[retention]
events = "7d"
[[target]]
name = "log"
type = "log"
[[installation]]
id = "acme"
type = "bare"
`
	const next = `
[node]
name = "other"
labels = { site = "b" }
[store]
url = "sqlite:two.db"
[lease]
ttl = "60s"
[admin]
socket = "/run/x.sock"
[connect]
proxy = { file = "/p" }
[delivery]
targets = []
[retention]
events = "9d"
[tasks.sweeper]
every = "2h"
[log]
level = "debug"
format = "json"
[[target]]
name = "log"
type = "log"
events = ["message"]
`
	t.Run("what can change is the next one's, what cannot stays, and each is named", func(t *testing.T) {
		was, now := mustLoad(t, old), mustLoad(t, next)
		got, changed, restart := was.Follow(now)
		if want := []string{"node.labels", "delivery.targets", "retention.events", "tasks.sweeper.every", "log.level"}; !slices.Equal(changed, want) {
			t.Errorf("changed: got %v, want %v", changed, want)
		}
		if want := []string{"node.name", "store.url", "lease.ttl", "connect.proxy", "admin.socket", "log.format"}; !slices.Equal(restart, want) {
			t.Errorf("restart: got %v, want %v", restart, want)
		}
		want := *now
		want.Node.Name, want.Store.URL, want.Lease.TTL, want.Connect.Proxy, want.Admin.Socket, want.Log.Format = was.Node.Name, was.Store.URL, was.Lease.TTL, was.Connect.Proxy, was.Admin.Socket, was.Log.Format
		if !reflect.DeepEqual(got, &want) {
			t.Errorf("got %+v, want %+v", got, &want)
		}
		if _, _, again := got.Follow(now); !slices.Equal(again, restart) {
			t.Errorf("asked again: got %v, want the same keys until a restart", again)
		}
	})

	t.Run("the same files need nothing", func(t *testing.T) {
		was := mustLoad(t, old)
		got, changed, restart := was.Follow(mustLoad(t, old))
		if len(changed)+len(restart) > 0 || len(got.Installations) != 1 {
			t.Errorf("got %v and %v, want neither", changed, restart)
		}
	})
}

func TestSalvage(t *testing.T) {
	f := folder{t, t.TempDir()}
	f.write("leasehold.toml", "node.data_dir = \"data\"\n[[installation]\nid = \"x\"\n[log]\nlevel = 7\n")
	src := testSource(f.dir)
	if _, err := Load(src); err == nil {
		t.Fatal("got a config, want faults")
	}
	c := Salvage(src)
	if c == nil || string(c.Admin.Socket) != f.dir+"/data/leasehold.sock" || c.Main() != f.dir+"/leasehold.toml" {
		t.Errorf("got %+v, want the socket and the file", c)
	}
	f.remove("leasehold.toml")
	src.Path = f.dir + "/leasehold.toml"
	src.Env = append(src.Env, "LEASEHOLD_NODE_DATA_DIR="+f.dir+"/other")
	if c = Salvage(src); c == nil || string(c.Admin.Socket) != f.dir+"/other/leasehold.sock" || c.Main() != src.Path || !c.OwnDataDir {
		t.Errorf("without a file: got %+v, want what the environment says of it", c)
	}
	if err := os.Mkdir(src.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if c = Salvage(src); c == nil || c.Main() != src.Path {
		t.Errorf("with a folder in its place: got %+v, want what the environment says of it", c)
	}
}
