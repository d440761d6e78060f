package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// host is what the defaults take from the machine.
type host struct {
	goos   string
	root   bool
	name   string
	cwd    string // absolute
	system string // folder of the system's configuration
	vars   variables
}

func thisHost(src Source) (host, error) {
	h := host{goos: runtime.GOOS, root: os.Geteuid() == 0, vars: readEnv(src.Env, runtime.GOOS)}
	var err error
	if h.cwd, err = filepath.Abs(src.Dir); err != nil {
		return h, err
	}
	if h.name, err = os.Hostname(); err != nil {
		h.name = "localhost" // a name is for people; a host without one still works
	}
	h.system = h.first("CONFIGURATION_DIRECTORY")
	switch {
	case h.system != "":
	case h.goos == "windows":
		h.system = filepath.Join(h.or("ProgramData", `C:\ProgramData`), "leasehold")
	default:
		h.system = "/etc/leasehold"
	}
	return h, nil
}

// user is the folder of the user's own configuration, "" when there is none.
func (h host) user() string {
	switch h.goos {
	case "windows":
		return under(h.get("AppData"), "leasehold")
	case "darwin":
		return under(h.get("HOME"), "Library/Application Support/leasehold")
	}
	if x := h.get("XDG_CONFIG_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "leasehold")
	}
	return under(h.get("HOME"), ".config/leasehold")
}

// data is the default of node.data_dir, "" when no folder is known.
func (h host) data() string {
	if dir := h.first("STATE_DIRECTORY"); dir != "" {
		return dir
	}
	switch {
	case h.goos == "windows":
		if dir := under(h.get("LocalAppData"), "leasehold"); dir != "" {
			return dir
		}
		return filepath.Join(h.or("ProgramData", `C:\ProgramData`), "leasehold", "data")
	case h.goos == "darwin" && h.root:
		return "/Library/Application Support/leasehold"
	case h.goos == "darwin":
		return under(h.get("HOME"), "Library/Application Support/leasehold")
	case h.root:
		return "/var/lib/leasehold"
	}
	if x := h.get("XDG_DATA_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "leasehold")
	}
	return under(h.get("HOME"), ".local/share/leasehold")
}

// runtimeFolder is where the socket is, "" when the system has no such place.
func (h host) runtimeFolder() string {
	if dir := h.first("RUNTIME_DIRECTORY"); dir != "" {
		return dir
	}
	switch {
	case h.goos == "windows" || h.goos == "darwin":
		return ""
	case h.root:
		return "/run/leasehold"
	}
	return under(h.get("XDG_RUNTIME_DIR"), "leasehold")
}

func (h host) get(name string) string {
	if h.goos == "windows" {
		return h.vars[strings.ToUpper(name)]
	}
	return h.vars[name]
}

func (h host) or(name, fallback string) string {
	if v := h.get(name); v != "" {
		return v
	}
	return fallback
}

// first is the first folder of a list that the service manager made.
func (h host) first(name string) string {
	if list := filepath.SplitList(h.get(name)); len(list) > 0 {
		return list[0]
	}
	return ""
}

func under(dir, sub string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(sub))
}
