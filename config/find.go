package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Main names the file that Load would read first, or that would be the first one if
// it were made: where an installation is added.
func Main(src Source) (string, error) {
	h, err := thisHost(src)
	if err != nil {
		return "", Faults{{Message: "the working folder is not known: " + err.Error(), Hint: "name the file with --config"}}
	}
	for _, named := range []string{src.Path, h.get(prefix + "CONFIG")} {
		if named != "" {
			return named, nil
		}
	}
	files, fault := h.find(src)
	switch {
	case fault != nil:
		return "", Faults{*fault}
	case len(files) == 0:
		return "leasehold.toml", nil
	case filepath.Base(filepath.Dir(files[0])) == "conf.d": // there are only parts
		return filepath.Join(filepath.Dir(filepath.Dir(files[0])), "leasehold.toml"), nil
	}
	return files[0], nil
}

// commandLine stands for the file of a text that is in none.
const commandLine = "the command line"

// find lists the files to read, in order: the config, then conf.d beside it.
func (h host) find(src Source) ([]string, *Fault) {
	switch {
	case src.Text != nil && src.Path == "":
		return []string{commandLine}, nil
	case src.Text != nil:
		return h.withParts(src.Path)
	}
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
	dir := filepath.Join(filepath.Dir(main), partsFolder)
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

// partsFolder is the folder beside a config whose files are read after it.
const partsFolder = "conf.d"

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
	return cause(err).Error()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// fileLimit bounds a file of the config: 16 MiB, about fifty thousand
// installations; more is some other file.
const fileLimit = 16 << 20

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
