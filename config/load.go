package config

import (
	"cmp"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// Source is what Load reads.
type Source struct {
	// Path is the file to read, as --config names it. "" = LEASEHOLD_CONFIG,
	// else the first that exists of leasehold.toml in Dir, in the user's folder
	// and in the system's, else none.
	Path string
	// Text is read instead of the file that Path names, which need not be there yet;
	// with Path "" it is all there is, and is called "the command line". nil = the
	// files are read.
	Text []byte
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
	c, faults := gather(src, h)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Salvage is what can be read of a config, whatever is wrong with it: where the
// program that runs with an earlier content of the same files may be asked. It is
// good for nothing else. Of a file that is named and is not there it is what the
// environment says. nil: it is not even known which file is meant.
func Salvage(src Source) *Config {
	h, err := thisHost(src)
	if err != nil {
		return nil
	}
	c, _ := gather(src, h)
	if named := cmp.Or(src.Path, h.get(prefix+"CONFIG")); c == nil && named != "" {
		src.Path, src.Text = "", []byte{}
		if c, _ = gather(src, h); c != nil {
			c.Files = []string{named}
		}
	}
	return c
}

// gather reads what can be read, and everything that is wrong. Without files to
// read there is no Config.
func gather(src Source, h host) (*Config, Faults) {
	w := newWalker(src, h)
	c := Default()
	files, fault := h.find(src)
	if fault != nil {
		return nil, Faults{*fault}
	}
	whole := true // every file could be read to its end
	for i, file := range files {
		c.Files = append(c.Files, file)
		data, fault := src.Text, (*Fault)(nil)
		if src.Text == nil || i > 0 {
			data, fault = read(h.abs(file))
		}
		if fault != nil {
			fault.File = file
			w.faults = append(w.faults, *fault)
			whole = false
			continue
		}
		tree, faults := parse(file, data)
		w.faults = append(w.faults, faults...)
		whole = whole && len(faults) == 0
		w.folder = filepath.Dir(h.abs(file)) // of the command line: the working folder
		w.table(tree, reflect.ValueOf(c).Elem(), "", false)
	}
	w.folder = h.cwd
	w.environ(h.vars, c)
	c.Uses = w.uses
	place(c, w.where)
	w.faults = append(w.faults, complete(c, w, h)...)
	w.faults = append(w.faults, validate(c, w.where, w.bad, !whole)...)
	w.faults.sort(files)
	return c, w.faults
}

// complete fills in what depends on the machine.
func complete(c *Config, w *walker, h host) Faults {
	_, c.OwnDataDir = w.where["node.data_dir"]
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
		if dir == "" || c.OwnDataDir {
			dir = string(c.Node.DataDir)
		}
		c.Admin.Socket = Path(filepath.Join(dir, "leasehold.sock"))
	}
	if _, c.OwnTargets = w.where["delivery.targets"]; !c.OwnTargets {
		for _, t := range c.Targets {
			c.Delivery.Targets = append(c.Delivery.Targets, t.Name)
		}
	}
	return nil
}

// place notes where the keys of each installation's config are set.
func place(c *Config, where map[string]Pos) {
	for path, pos := range where {
		list, rest, _ := strings.Cut(path, ".")
		nth, key, _ := strings.Cut(rest, ".config.")
		i, err := strconv.Atoi(nth)
		if list != "installation" || key == "" || err != nil {
			continue
		}
		inst := &c.Installations[i]
		if inst.Keys == nil {
			inst.Keys = map[string]Pos{}
		}
		inst.Keys[key] = pos
	}
}
