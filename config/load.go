package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Source is what Load reads.
type Source struct {
	// Path is the file to read, as --config names it. "" = LEASEHOLD_CONFIG,
	// else the first that exists of leasehold.toml in Dir, in the user's folder
	// and in the system's, else none.
	Path string
	// Env is the environment, as os.Environ returns it.
	Env []string
	// Dir is the folder that relative paths of the command line and of the
	// environment belong to. "" = the working folder.
	Dir string
	// Types returns the config struct of a channel type; nil for a type without
	// keys; false for a type that is not known. With Types nil, no type and no
	// [installation.config] is checked.
	Types func(channelType string) (reflect.Type, bool)
	// TypeNames are the known channel types, for suggestions.
	TypeNames []string
}

// fileLimit bounds a file of the config: 16 MiB, about fifty thousand
// installations; more is some other file.
const fileLimit = 16 << 20

// Load reads the files, then the environment. The error is Faults, holding
// everything that is wrong; the Config is nil then.
func Load(src Source) (*Config, error) {
	h, err := thisHost(src)
	if err != nil {
		return nil, Faults{{Message: "the working folder is not known: " + err.Error(), Hint: "name the file with --config"}}
	}
	return load(src, h)
}

func load(src Source, h host) (*Config, error) {
	w := newWalker(src, h)
	c := Default()
	files, fault := h.find(src)
	if fault != nil {
		return nil, Faults{*fault}
	}
	whole := true // every file could be read to its end
	for _, file := range files {
		c.Files = append(c.Files, file)
		data, fault := read(h.abs(file))
		if fault != nil {
			fault.File = file
			w.faults = append(w.faults, *fault)
			whole = false
			continue
		}
		tree, faults := parse(file, data)
		w.faults = append(w.faults, faults...)
		whole = whole && len(faults) == 0
		w.folder = filepath.Dir(h.abs(file))
		w.table(tree, reflect.ValueOf(c).Elem(), "", false)
	}
	w.folder = h.cwd
	w.environ(h.vars, c)
	c.Uses = w.uses
	w.faults = append(w.faults, complete(c, w, h)...)
	w.faults = append(w.faults, validate(c, w.where, w.bad, !whole)...)
	w.faults.sort(files)
	if err := w.faults.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// complete fills in what depends on the machine.
func complete(c *Config, w *walker, h host) Faults {
	_, ownFolder := w.where["node.data_dir"]
	if c.Node.Name == "" {
		c.Node.Name = h.name
	}
	if c.Node.DataDir == "" {
		c.Node.DataDir = Path(h.data())
	}
	if c.Node.DataDir == "" {
		return Faults{{File: environment, Key: "node.data_dir", Message: "no folder for data is known", Hint: "set node.data_dir, or HOME"}}
	}
	if c.Admin.Socket == "" {
		dir := h.runtimeFolder()
		if dir == "" || ownFolder {
			dir = string(c.Node.DataDir)
		}
		c.Admin.Socket = Path(filepath.Join(dir, "leasehold.sock"))
	}
	if _, set := w.where["delivery.targets"]; !set {
		for _, t := range c.Targets {
			c.Delivery.Targets = append(c.Delivery.Targets, t.Name)
		}
	}
	return nil
}

// find lists the files to read, in order: the config, then conf.d beside it.
func (h host) find(src Source) ([]string, *Fault) {
	if src.Path != "" {
		return h.named(src.Path, "named by --config")
	}
	if path := h.get(prefix + "CONFIG"); path != "" {
		return h.named(path, "named by "+prefix+"CONFIG")
	}
	here := "leasehold.toml"
	if src.Dir != "" {
		here = filepath.Join(src.Dir, here)
	}
	if exists(h.abs(here)) {
		return h.withParts(here)
	}
	for _, dir := range []string{h.user(), h.system} {
		if dir == "" {
			continue
		}
		main := filepath.Join(dir, "leasehold.toml")
		files, fault := h.withParts(main)
		if fault != nil || exists(main) {
			return files, fault
		}
		if len(files) > 1 { // a folder that has only conf.d
			return files[1:], nil
		}
	}
	return nil, nil
}

// named is a file that somebody asked for: it must be there.
func (h host) named(path, by string) ([]string, *Fault) {
	info, err := os.Stat(h.abs(path))
	if err == nil && info.IsDir() {
		return nil, &Fault{File: path, Message: "is a folder", Hint: by + "; name the file in it"}
	}
	if err != nil {
		return nil, &Fault{File: path, Message: reason(err), Hint: by}
	}
	return h.withParts(path)
}

// withParts adds conf.d/*.toml beside a file, in the order of the names. Hidden
// files are an editor's.
func (h host) withParts(main string) ([]string, *Fault) {
	dir := filepath.Join(filepath.Dir(main), "conf.d")
	entries, err := os.ReadDir(h.abs(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &Fault{File: dir, Message: reason(err)}
	}
	files := []string{main}
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(name, ".toml") && !strings.HasPrefix(name, ".") {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, nil
}

func read(path string) ([]byte, *Fault) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &Fault{Message: "is not a file"} // reading a pipe could wait for ever
	}
	if err != nil {
		return nil, &Fault{Message: reason(err)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Fault{Message: reason(err)}
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	data, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	if err != nil {
		return nil, &Fault{Message: reason(err)}
	}
	if len(data) > fileLimit {
		return nil, &Fault{Message: "is larger than 16 MiB"}
	}
	return data, nil
}

// reason is an error of the file system without the path, which stands before it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// abs is a path of the command line or the environment.
func (h host) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(h.cwd, path)
}

// absolute is a path of the file that is being walked.
func (w *walker) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(w.folder, path)
}
