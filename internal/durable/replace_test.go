package durable_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"leasehold/internal/durable"
)

func TestReplace(t *testing.T) {
	read := func(t *testing.T, path string) string {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	t.Run("a file that is not there is made with the mode that is asked for", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x")
		must(t, durable.Replace(path, []byte("new"), 0o640))
		info, err := os.Stat(path)
		must(t, err)
		if got := read(t, path); got != "new" || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("got %q with mode %v, want new with 0640", got, info.Mode())
		}
	})

	t.Run("one that is there keeps its mode, and a link to it stays a link", func(t *testing.T) {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "x"), filepath.Join(dir, "link")
		must(t, os.WriteFile(path, []byte("old"), 0o604))
		must(t, os.Chmod(path, 0o604))
		target := path
		if os.Symlink("x", link) == nil {
			target = link
		}
		must(t, durable.Replace(target, []byte("new"), 0o600))
		info, err := os.Stat(path)
		must(t, err)
		if got := read(t, path); got != "new" || runtime.GOOS != "windows" && info.Mode().Perm() != 0o604 {
			t.Errorf("got %q with mode %v, want new with 0604", got, info.Mode())
		}
		if info, err := os.Lstat(target); err != nil || target == link && info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link: got %v, %v, want a link still", info.Mode(), err)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) > 2 {
			t.Errorf("the folder: got %v, %v, want nothing beside the file and its link", all, err)
		}
	})

	t.Run("what cannot be replaced stays as it was, with nothing beside it", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		must(t, os.MkdirAll(filepath.Join(path, "full"), 0o700)) // no file can take a folder's place
		if err := durable.Replace(path, []byte("new"), 0o600); err == nil {
			t.Error("got no error for a folder, want one")
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("the folder: got %v, %v, want the one that was there", all, err)
		}
	})
}
