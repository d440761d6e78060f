package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/store/sqlite"
)

// found fails unless the Finding has the level, and says the words in what it found
// or in what to do.
func found(t *testing.T, f Finding, l Level, words ...string) {
	t.Helper()
	if f.Level != l {
		t.Errorf("got %s (%s), want %s", f.Level, f.Detail, l)
	}
	if (f.Level == OK) != (f.NextStep == "") {
		t.Errorf("%s: got next step %q, want one unless it is ok", f.Level, f.NextStep)
	}
	for _, w := range words {
		if !strings.Contains(f.Detail+"\n"+f.NextStep, w) {
			t.Errorf("got %q and %q, want %q in it", f.Detail, f.NextStep, w)
		}
	}
}

// only is the one Finding of a check.
func only(t *testing.T, all []Finding) Finding {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("got %d findings %v, want one", len(all), all)
	}
	return all[0]
}

func TestCheckClock(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	t.Run("one that is steered is fine, as is one of which nothing is told", func(t *testing.T) {
		found(t, checkClock(inSync, now, now.AddDate(0, -1, 0)), OK, "2026-11-30T09:00:00Z", "synchronised")
		found(t, checkClock(unknownSync, now, time.Time{}), OK, "does not tell")
	})
	t.Run("one that nobody steers is a warning, one before this program was made a failure", func(t *testing.T) {
		found(t, checkClock(outOfSync, now, time.Time{}), Warn, "timedatectl set-ntp true")
		found(t, checkClock(inSync, now, now.AddDate(0, 0, 2)), Fail, "2026-12-02", "timedatectl")
	})
}

func TestCheckSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("a-token-for-tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	use := func(kind, name string) *Patient {
		return &Patient{Resolve: config.NewSecrets(nil).Resolve, Config: &config.Config{Uses: []config.Use{{
			Pos: config.Pos{File: "leasehold.toml", Line: 3}, Key: "token", Reference: config.Reference{Kind: kind, Name: name},
		}}}}
	}
	t.Run("one that is there for us alone is fine", func(t *testing.T) {
		found(t, only(t, checkSecrets(use("file", file))), OK, "1 references")
	})
	t.Run("a file that everybody reads, or that is not there, is a failure", func(t *testing.T) {
		if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // that is the fault
			t.Fatal(err)
		}
		found(t, only(t, checkSecrets(use("file", file))), Fail, "leasehold.toml:3", "chmod 600 "+file)
		found(t, only(t, checkSecrets(use("file", file+"x"))), Fail, file+"x")
	})
	t.Run("a variable may be there for the service", func(t *testing.T) {
		found(t, only(t, checkSecrets(use("env", "X"))), Warn, "X is not set", "although this shell does not")
	})
}

func TestCheckProxy(t *testing.T) {
	env := func(name string) string { return map[string]string{"https_proxy": "http://proxy"}[name] }
	t.Run("a variable that only the targets heed is a warning", func(t *testing.T) {
		found(t, only(t, checkProxy(config.Connect{}, env)), Warn, "https_proxy", "[connect] proxy")
	})
	t.Run("with a proxy for the channels it is none", func(t *testing.T) {
		if got := checkProxy(config.Connect{Proxy: config.Value{Literal: "http://proxy"}}, env); got != nil {
			t.Errorf("got %v, want nothing", got)
		}
		if got := checkProxy(config.Connect{}, func(string) string { return "" }); got != nil {
			t.Errorf("without a variable: got %v, want nothing", got)
		}
	})
}

func TestCheckDataDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	t.Run("one that is not there yet is made by the first start", func(t *testing.T) {
		found(t, only(t, checkDataDir(dir)), OK, "first start")
		found(t, only(t, checkDataDir("")), Fail, "node.data_dir")
	})
	t.Run("one of ours alone is fine, a file in its place is not", func(t *testing.T) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		found(t, only(t, checkDataDir(dir)), OK, dir)
		file := filepath.Join(dir, "x")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		found(t, only(t, checkDataDir(file)), Fail, "not a folder")
	})
}

func TestCheckPlace(t *testing.T) {
	roomy := sqlite.Place{Path: "/data/leasehold.db", Free: 10 << 30, Nodes: -1, There: true, Bytes: 1 << 20}
	with := func(change func(*sqlite.Place)) sqlite.Place {
		p := roomy
		change(&p)
		return p
	}
	t.Run("a local disk with room is fine", func(t *testing.T) {
		found(t, checkFileSystem(roomy, false), OK)
		found(t, checkDisk(roomy), OK, "10 GB free")
		found(t, checkLog(roomy, true), OK)
	})
	t.Run("a network is a failure, and a warning where it is forced", func(t *testing.T) {
		nfs := with(func(p *sqlite.Place) { p.FileSystem, p.Network = "NFS", true })
		found(t, checkFileSystem(nfs, false), Fail, "NFS", "node.data_dir")
		found(t, checkFileSystem(nfs, true), Warn, "force_network_fs", "node.data_dir")
	})
	t.Run("what is lost at a restart is a warning", func(t *testing.T) {
		found(t, checkFileSystem(with(func(p *sqlite.Place) { p.FileSystem, p.Volatile = "tmpfs", true }), false), Warn, "restarts")
		found(t, checkFileSystem(with(func(p *sqlite.Place) { p.FileSystem, p.Volatile = "overlay", true }), false), Warn, "mount a volume")
	})
	t.Run("a disk that fills is told before events are refused, and when they are", func(t *testing.T) {
		found(t, checkDisk(with(func(p *sqlite.Place) { p.Free = 40 << 20 })), Warn, "40 MB", "du -xh")
		found(t, checkDisk(with(func(p *sqlite.Place) { p.Free = 1 << 20 })), Fail, "no event is accepted")
		found(t, checkDisk(with(func(p *sqlite.Place) { p.Nodes = 2 })), Fail, "room for 2 files")
		found(t, checkDisk(with(func(p *sqlite.Place) { p.ReserveLacks = 16 << 20 })), Warn, "reserve", "tasks run upkeep")
	})
	t.Run("a small or full volume without a reserve is told, with what that means", func(t *testing.T) {
		without := func(free int64) sqlite.Place {
			return with(func(p *sqlite.Place) { p.Free, p.NoReserve = free, true })
		}
		found(t, checkDisk(without(40<<20)), Warn, "there is no reserve", "deliveries drop", "du -xh")
		found(t, checkDisk(without(100<<20)), Warn, "there is no reserve", "64 MB or more")
		found(t, checkDisk(without(0)), Fail, "there is no reserve", "deliveries drop", "du -xh")
	})
	t.Run("a log that is not folded in is told, with who may hold it", func(t *testing.T) {
		long := with(func(p *sqlite.Place) { p.LogBytes = 500 << 20 })
		found(t, checkLog(long, true), Warn, "500 MB", "fuser /data/leasehold.db")
		found(t, checkLog(long, false), Warn, "start leasehold")
	})
	t.Run("what a kill left is told once nobody is at work", func(t *testing.T) {
		left := with(func(p *sqlite.Place) { p.Parts = []string{"/data/leasehold.db.1.part"} })
		found(t, only(t, checkLeftovers(left, false)), Warn, "the next start removes them")
		if got := checkLeftovers(left, true); got != nil {
			t.Errorf("at work: got %v, want nothing", got)
		}
	})
}

func TestCheckBackups(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "leasehold-00000000-20261130T090000Z.db")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	aged := func(d time.Duration) *sqlite.BackupFile { return &sqlite.BackupFile{Path: file, At: now.Add(-d)} }
	daily := config.Backup{Every: config.Duration(24 * time.Hour)}
	t.Run("a recent one is fine", func(t *testing.T) {
		found(t, checkBackups(daily, aged(30*time.Hour), now), OK, file)
		found(t, checkBackups(config.Backup{}, aged(30*time.Hour), now), OK, file)
	})
	t.Run("none, or an old one, is a warning", func(t *testing.T) {
		found(t, checkBackups(config.Backup{}, nil, now), Warn, "[tasks.backup]")
		found(t, checkBackups(daily, nil, now), Warn, "leasehold tasks run backup")
		found(t, checkBackups(daily, aged(100*time.Hour), now), Warn, "every 1d", "leasehold tasks list")
		found(t, checkBackups(config.Backup{}, aged(10*24*time.Hour), now), Warn, "none is made by itself", "[tasks.backup]")
	})
	t.Run("an empty one is a failure", func(t *testing.T) {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		found(t, checkBackups(daily, aged(time.Hour), now), Fail, "empty", "leasehold backup")
	})
}

func TestCheckDatabase(t *testing.T) {
	type box struct {
		*Patient
		dir string
	}
	opened := func(t *testing.T) *box {
		t.Helper()
		dir := t.TempDir()
		x := &Patient{Config: config.Default(), path: filepath.Join(dir, "leasehold.db")}
		x.Config.Node.DataDir = config.Path(dir)
		s, err := sqlite.Open(t.Context(), x.path, sqlite.Options{DataDir: dir, ReserveBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return &box{x, dir}
	}
	look := func(t *testing.T, x *box, newest *sqlite.BackupFile) Finding {
		t.Helper()
		p, err := sqlite.Look(x.path)
		if err != nil {
			t.Fatal(err)
		}
		return checkDatabase(t.Context(), x.Patient, p, newest)
	}
	newest := &sqlite.BackupFile{Path: "/mnt/usb/leasehold-00000000-20261130T090000Z.db"}

	t.Run("a sound one is fine, as is one that is not made yet", func(t *testing.T) {
		x := opened(t)
		found(t, look(t, x, nil), OK, "--full")
		x.Full = true
		found(t, look(t, x, nil), OK, "sound")
		y := &box{Patient: &Patient{Config: config.Default(), path: filepath.Join(t.TempDir(), "leasehold.db")}}
		y.Config.Node.DataDir = config.Path(t.TempDir())
		found(t, look(t, y, nil), OK, "first start")
	})
	t.Run("one that is gone, or empty, names the newest backup", func(t *testing.T) {
		x := opened(t)
		if err := os.Truncate(x.path, 0); err != nil {
			t.Fatal(err)
		}
		found(t, look(t, x, newest), Fail, "gone", "leasehold restore --replace "+newest.Path)
		if err := os.Remove(x.path); err != nil {
			t.Fatal(err)
		}
		found(t, look(t, x, nil), Fail, "gone", "leasehold restore")
	})
	t.Run("a damaged one names it, too", func(t *testing.T) {
		x := opened(t)
		b, err := os.ReadFile(x.path)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[5*4096:], strings.Repeat("\xA5", 4096))
		if err := os.WriteFile(x.path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x.Full = true
		found(t, look(t, x, newest), Fail, "damaged", "leasehold restore --replace "+newest.Path)
		if err := os.WriteFile(x.path, []byte("what is left of it"), 0o600); err != nil {
			t.Fatal(err)
		}
		x.Full = false
		found(t, look(t, x, newest), Fail, newest.Path)
	})
}

func TestCheckProcess(t *testing.T) {
	owner := sqlite.Owner{PID: 7, Host: "gw", Started: time.Now()}
	gone := fmt.Errorf("ask: %w", admin.ErrNoAnswer)
	t.Run("one that answers is fine, as is nobody", func(t *testing.T) {
		found(t, checkAnswer("/s", nil, owner, true, admin.Overview{Node: &admin.NodeInfo{PID: 7, Name: "gw"}}), OK, "process 7 runs as gw")
		found(t, checkAnswer("/s", gone, sqlite.Owner{}, false, admin.Overview{}), OK, "leasehold run")
	})
	t.Run("one that has the store and does not answer is a failure", func(t *testing.T) {
		found(t, checkAnswer("/s", gone, owner, true, admin.Overview{}), Fail, "process 7 on gw", "admin.socket")
		found(t, checkAnswer("/s", errors.New("/s is another user's"), owner, true, admin.Overview{}), Fail, "another user's")
	})
	t.Run("one that only waits is a warning", func(t *testing.T) {
		found(t, checkAnswer("/s", nil, owner, true, admin.Overview{Holder: "process 7"}), Warn, "process 7")
	})
	t.Run("another copy that waits is found by its socket, and one that is gone is not", func(t *testing.T) {
		dir := t.TempDir()
		socket := filepath.Join(dir, "leasehold.sock")
		if got := checkCopies(t.Context(), socket); got != nil {
			t.Errorf("got %v, want nothing", got)
		}
		l, err := admin.Listen(t.Context(), filepath.Join(dir, "leasehold.42.sock"))
		if err != nil {
			t.Fatal(err)
		}
		found(t, only(t, checkCopies(t.Context(), socket)), Warn, "leasehold.42.sock", "stop the one")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := checkCopies(t.Context(), socket); got != nil {
			t.Errorf("after its end: got %v, want nothing", got)
		}
	})
	t.Run("another version that runs is a warning", func(t *testing.T) {
		one, two := admin.Version{Version: "1.0.0", Commit: "abc"}, admin.Version{Version: "1.0.0", Commit: "def"}
		found(t, checkVersion(one, one), OK, "1.0.0 (abc)")
		found(t, checkVersion(one, two), Warn, "1.0.0 (def) runs", "restart")
	})
}

func TestCheckOpenFiles(t *testing.T) {
	need := filesNeeded(1000, config.Delivery{Concurrency: 256})
	t.Run("what a thousand installations need", func(t *testing.T) {
		if need < 2256 || need > 2500 {
			t.Errorf("got %d, want two for each and one for each delivery, and some", need)
		}
		found(t, checkOpenFiles(20_000, need), OK, "20000")
		found(t, checkOpenFiles(0, need), OK)
	})
	t.Run("a limit below it is a failure, with both ways to raise it", func(t *testing.T) {
		found(t, checkOpenFiles(1024, need), Fail, fmt.Sprintf("LimitNOFILE=%d", 2*need), fmt.Sprintf("ulimit -n %d", 2*need))
	})
}

func TestCheckHosts(t *testing.T) {
	t.Run("every host that the config leads to is found, with its default port", func(t *testing.T) {
		types, err := channel.NewTypes(nil, channel.Define(channel.Definition[struct{}]{
			Name: "known", Hosts: []string{"api.example.org:443"}, New: func(context.Context, struct{}) (channel.Channel, error) { return nil, nil },
		}))
		if err != nil {
			t.Fatal(err)
		}
		url := func(u string) json.RawMessage { return fmt.Appendf(nil, `{"url":%q}`, u) }
		x := &Patient{Types: types, Config: &config.Config{
			Targets: []config.Target{{Name: "app", URL: "http://127.0.0.1:3000/events"}, {Name: "log"}},
			Installations: []config.Installation{
				{ID: "a", Type: "known", Enabled: true},
				{ID: "b", Enabled: true, Config: url("wss://ws.example.org/v1?t={{t}}")},
				{ID: "c", Enabled: true, Config: url("mqtts://broker.example.org")},
				{ID: "d", Config: url("ws://disabled.example.org")},
				{ID: "e", Enabled: true, Config: json.RawMessage(`{"url":{"env":"X"}}`)},
			},
		}}
		got := hostsOf(x)
		want := map[string]string{
			"127.0.0.1:3000": `target "app"`, "api.example.org:443": `installation "a"`,
			"ws.example.org:443": `installation "b"`, "broker.example.org:8883": `installation "c"`,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		x.Config.Connect.Proxy = config.Value{Literal: "http://proxy.example.org:3128"}
		got = hostsOf(x)
		want = map[string]string{"127.0.0.1:3000": `target "app"`, "proxy.example.org:3128": "connect.proxy"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("behind a proxy: got %v, want %v", got, want)
		}
	})
	t.Run("one that answers is fine, one that does not is a failure", func(t *testing.T) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		found(t, only(t, checkHosts(t.Context(), map[string]string{address: "x"})), OK, address)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		found(t, only(t, checkHosts(t.Context(), map[string]string{address: `target "app"`})), Fail, address, `target "app"`, "firewall")
		found(t, only(t, checkHosts(t.Context(), map[string]string{"no-such-host.invalid:443": "x"})), Fail, "no-such-host.invalid")
		found(t, only(t, checkHosts(t.Context(), nil)), OK)
	})
}
