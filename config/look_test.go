package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// folder is a folder of files that a test changes.
type folder struct {
	t   *testing.T
	dir string
}

func (f folder) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// age sets a file's times far enough back for its content to be believed settled.
func (f folder) age(name string) {
	f.t.Helper()
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(f.dir, name), past, past); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) remove(name string) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) link(to, name string) {
	f.t.Helper()
	fresh := filepath.Join(f.dir, name+".new")
	if err := os.Symlink(to, fresh); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(fresh, filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) look(last *Look) *Look {
	src := testSource(f.dir)
	src.Path = filepath.Join(f.dir, "leasehold.toml")
	return LookAt(src, last)
}

func newFolder(t *testing.T) folder {
	t.Helper()
	f := folder{t, t.TempDir()}
	f.write("leasehold.toml", "[log]\nlevel = \"info\"\n")
	f.write("conf.d/10.toml", "[retention]\nevents = \"1d\"\n")
	f.age("leasehold.toml")
	f.age("conf.d/10.toml")
	return f
}

func TestLook(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(folder)
		same   bool
	}{
		{"nothing", func(folder) {}, true},
		{"a touch", func(f folder) { f.age("leasehold.toml") }, true},
		{"the same content in a new file", func(f folder) {
			f.write("new", "[log]\nlevel = \"info\"\n")
			if err := os.Rename(filepath.Join(f.dir, "new"), filepath.Join(f.dir, "leasehold.toml")); err != nil {
				f.t.Fatal(err)
			}
		}, true},
		{"another file that no config is read from", func(f folder) { f.write("conf.d/.10.toml.swp", "x"); f.write("conf.d/notes.txt", "x") }, true},
		{"another content", func(f folder) { f.write("leasehold.toml", "[log]\nlevel = \"warn\"\n") }, false},
		{"another content in an older file", func(f folder) { f.write("leasehold.toml", "[log]\nlevel = \"warn\"\n"); f.age("leasehold.toml") }, false},
		{"a content of the same length in a file of the same age", func(f folder) {
			f.write("conf.d/10.toml", "[retention]\nevents = \"2d\"\n")
			f.age("conf.d/10.toml")
		}, false},
		{"a file more", func(f folder) { f.write("conf.d/20.toml", "") }, false},
		{"a file less", func(f folder) { f.remove("conf.d/10.toml") }, false},
		{"no file", func(f folder) { f.remove("leasehold.toml") }, false},
		{"a folder in its place", func(f folder) { f.remove("leasehold.toml"); f.write("leasehold.toml/x", "") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t)
			first := f.look(nil)
			c.change(f)
			second := f.look(first)
			if got := second.Same(first); got != c.same {
				t.Errorf("same: got %v, want %v", got, c.same)
			}
			if !f.look(second).Same(second) {
				t.Error("a third look: got a change, want none")
			}
		})
	}

	t.Run("two changes within one tick of the file system's clock are both seen", func(t *testing.T) {
		f := newFolder(t)
		last, now := f.look(nil), time.Now()
		for _, text := range []string{"# a\n", "# b\n", "# c\n"} {
			f.write("leasehold.toml", text)
			if err := os.Chtimes(filepath.Join(f.dir, "leasehold.toml"), now, now); err != nil {
				t.Fatal(err)
			}
			next := f.look(last)
			if next.Same(last) {
				t.Errorf("%q: got no change, want one", text)
			}
			last = next
		}
	})

	t.Run("a settled file is not read again", func(t *testing.T) {
		f := newFolder(t)
		first := f.look(nil)
		first.files[0].hash[0]++ // as if it had been read with another content
		if got := f.look(first); got.files[0].hash != first.files[0].hash {
			t.Error("got it read again, want what was seen")
		}
	})

	t.Run("a swap of the symlinks of a mounted volume is seen", func(t *testing.T) {
		f := newFolder(t)
		f.write("..1/leasehold.toml", "# one\n")
		f.write("..2/leasehold.toml", "# two\n")
		f.age("..1/leasehold.toml")
		f.age("..2/leasehold.toml")
		f.link("..1", "..data")
		f.link("..data/leasehold.toml", "leasehold.toml")
		first := f.look(nil)
		f.link("..2", "..data")
		if f.look(first).Same(first) {
			t.Error("got no change, want one")
		}
	})
}

func TestLostAndDoubts(t *testing.T) {
	const meant = "leasehold reload --allow-empty applies it if that is meant"
	for _, c := range []struct {
		name         string
		change       func(folder)
		lost, doubts string
	}{
		{"a change", func(f folder) { f.write("leasehold.toml", "# x\n") }, "", ""},
		{"a part less of two", func(f folder) { f.write("conf.d/20.toml", "# x\n"); f.remove("conf.d/10.toml") }, "", ""},
		{"the last part less", func(f folder) { f.remove("conf.d/10.toml") }, "", "conf.d: has no file any more (" + meant + ")"},
		{"no folder of parts", func(f folder) { f.remove("conf.d") }, "", "conf.d: has no file any more (" + meant + ")"},
		{"an emptied file", func(f folder) { f.write("leasehold.toml", "\n") }, "", "leasehold.toml: is empty now (" + meant + ")"},
		{"an emptied part", func(f folder) { f.write("conf.d/10.toml", "") }, "", "conf.d/10.toml: is empty now (" + meant + ")"},
		{"no file", func(f folder) { f.remove("leasehold.toml") }, "leasehold.toml: is gone (put it back; to run without it, restart leasehold)", "conf.d: has no file any more (" + meant + ")"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t)
			first := f.look(nil)
			c.change(f)
			second := f.look(first)
			for _, x := range []struct{ what, got, want string }{
				{"lost", second.Lost(first).Error(), c.lost}, {"doubts", second.Doubts(first).Error(), c.doubts},
			} {
				if got := strings.ReplaceAll(x.got, f.dir+"/", ""); got != x.want {
					t.Errorf("%s: got %q, want %q", x.what, got, x.want)
				}
			}
		})
	}

	t.Run("a file that is found nearer than the one before is no loss", func(t *testing.T) {
		home, here := folder{t, t.TempDir()}, folder{t, t.TempDir()}
		home.write("leasehold/leasehold.toml", "# x\n")
		src := testSource(here.dir)
		src.Env = []string{"XDG_CONFIG_HOME=" + home.dir}
		first := LookAt(src, nil)
		here.write("leasehold.toml", "# y\n")
		second := LookAt(src, first)
		if second.Same(first) || len(second.Lost(first)) > 0 {
			t.Errorf("got same %v and lost %v, want a change and no loss", second.Same(first), second.Lost(first))
		}
	})
}
