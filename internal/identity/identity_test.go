package identity_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/internal/fault"
	"leasehold/internal/identity"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := identity.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Lock(dir); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "node.data_dir") {
		t.Errorf("a second lock: got %v, want that another process has it, and what to do", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	unlock, err = identity.Lock(dir)
	if err != nil {
		t.Fatalf("after the first was given up: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := identity.Lock(filepath.Join(dir, "missing")); !fault.Is(err, fault.ReadOnly) {
		t.Errorf("without a folder: got %v, want that it cannot be written", err)
	}
}

func load(t *testing.T, dir string) *identity.Identity {
	t.Helper()
	id, err := identity.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestIdentity(t *testing.T) {
	t.Run("a new folder has a new identity, which nothing has written yet", func(t *testing.T) {
		dir := t.TempDir()
		a, b := load(t, dir), load(t, dir)
		if len(a.Instance) != 32 || a.Instance == b.Instance || a.Previous != "" || a.Store != "" {
			t.Errorf("got %+v and %+v, want two random instances", a, b)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
			t.Errorf("got files %v, %v, want none", files, err)
		}
	})

	t.Run("what was set is there after a restart, for its owner's eyes", func(t *testing.T) {
		dir := t.TempDir()
		id := load(t, dir)
		must(t, id.SetStore("store", ""))
		must(t, id.SetSession("session 1", "v1.0.0"))
		got := load(t, dir)
		if got.Instance != id.Instance || got.Previous != "session 1" || got.Version != "v1.0.0" || got.Store != "store" {
			t.Errorf("got %+v, want %+v", got, id)
		}
		info, err := os.Stat(filepath.Join(dir, "instance.json"))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, want 0600", info.Mode())
		}
		must(t, got.SetSession("session 2", "v1.1.0"))
		if again := load(t, dir); again.Previous != "session 2" || again.Store != "store" {
			t.Errorf("got %+v, want the second session and the same store", again)
		}
	})

	t.Run("setting what is set writes nothing", func(t *testing.T) {
		dir := t.TempDir()
		must(t, load(t, dir).SetStore("store", ""))
		before, err := os.Stat(filepath.Join(dir, "instance.json"))
		must(t, err)
		must(t, load(t, dir).SetStore("store", ""))
		after, err := os.Stat(filepath.Join(dir, "instance.json"))
		must(t, err)
		if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
			t.Error("got another file, want the same one")
		}
	})

	t.Run("a file that holds no identity is not replaced in silence", func(t *testing.T) {
		for _, text := range []string{"", "{}", "not json", `{"instance_id":""}`} {
			dir := t.TempDir()
			path := filepath.Join(dir, "instance.json")
			must(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := identity.Load(dir)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q: got %v, want a refusal that names it", text, err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != text {
				t.Errorf("got %q, %v, want %q untouched", b, err, text)
			}
		}
	})

	t.Run("a write that fails leaves what was there", func(t *testing.T) {
		dir := t.TempDir()
		id := load(t, dir)
		must(t, id.SetSession("first", "v1.0.0"))
		must(t, os.Mkdir(filepath.Join(dir, "instance.json.tmp"), 0o700)) // in the way
		err := id.SetSession("second", "v1.0.0")
		if !fault.Is(err, fault.ReadOnly) || id.Previous != "first" {
			t.Errorf("got %v and %q, want a refusal and the first session", err, id.Previous)
		}
		if got := load(t, dir); got.Previous != "first" {
			t.Errorf("got %q, want the first session", got.Previous)
		}
	})

	t.Run("a host is this boot and this folder", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		host := func(dir string) (boot, folder string) {
			t.Helper()
			h, err := identity.Host(dir)
			must(t, err)
			boot, folder, ok := strings.Cut(h, "/")
			if !ok || boot == "" || folder == "" {
				t.Fatalf("got %q, want a boot id, a slash and a folder", h)
			}
			return boot, folder
		}
		boot, folder := host(dir)
		sameBoot, sameFolder := host(dir)
		otherBoot, otherFolder := host(other)
		if boot != sameBoot || boot != otherBoot {
			t.Errorf("got boots %q, %q and %q, want one", boot, sameBoot, otherBoot)
		}
		if folder != sameFolder || folder == otherFolder {
			t.Errorf("got folders %q, %q and %q, want the third to differ", folder, sameFolder, otherFolder)
		}
		if _, err := identity.Host(filepath.Join(dir, "none")); err == nil {
			t.Error("got no error for a folder that is not there, want one")
		}
	})
}
