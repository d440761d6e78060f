package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"leasehold/channel"
	"leasehold/internal/child"
	"leasehold/internal/redact"
)

// Config is the type's part of an installation. Its doc tags are its manual.
type Config struct {
	Command []string                   `json:"command" channel:"required,connection" doc:"The program and its arguments, run without a shell: an absolute path, or a name in the PATH. No secrets here: everybody on the machine can read them."`
	Env     map[string]channel.Text    `json:"env" channel:"connection" doc:"Variables of its environment, literal or by reference. Beside them it has PATH, HOME, TZ and the like, and nothing else of ours."`
	Config  map[string]json.RawMessage `json:"config" channel:"connection" doc:"A table of its own, handed over in start. No secrets here: they belong in env."`
}

// nameVariable says for which installation a program runs.
const nameVariable = "LEASEHOLD_INSTALLATION"

// plan is a checked config.
type plan struct {
	command []string
	env     []string
	config  map[string]json.RawMessage
	redact  *redact.Redactor // knows the values of env
}

func newPlan(c Config, environ []string) (*plan, error) {
	p := &plan{command: c.Command, config: c.Config, redact: redact.New()}
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, errors.New(`command: is empty; write command = ["/path/to/program", "argument"]`)
	}
	if name := c.Command[0]; !filepath.IsAbs(name) && filepath.Base(name) != name {
		return nil, fmt.Errorf("command: %q depends on the folder that Leasehold was started in; write an absolute path, or a name in the PATH", name)
	}
	if slices.ContainsFunc(c.Command, hasNUL) {
		return nil, errors.New("command: has a NUL byte in it")
	}
	p.env = basics(environ, runtime.GOOS == "windows")
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name].Reveal()
		switch {
		case name == "" || strings.Contains(name, "=") || hasNUL(name):
			return nil, fmt.Errorf("env: %q is no name of a variable", name)
		case name == child.Marker || name == nameVariable:
			return nil, fmt.Errorf("env: %s is set by Leasehold; remove it", name)
		case hasNUL(value):
			return nil, fmt.Errorf("env.%s: has a NUL byte in it", name)
		}
		p.redact.Add(value)
		p.env = append(p.env, name+"="+value)
	}
	if p.config == nil {
		p.config = map[string]json.RawMessage{}
	}
	return p, nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// basicNames are the variables that programs need to find their way, and basicHeads
// the beginnings of such. A proxy is not among them: there may be a password in it.
func basicNames(windows bool) (names, heads []string) {
	if windows {
		return []string{
			"PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "TEMP", "TMP", "USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
			"PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
		}, nil
	}
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}, []string{"LC_", "XDG_"}
}

// basics picks from an environment what every program gets.
func basics(environ []string, windows bool) []string {
	names, heads := basicNames(windows)
	var all []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if windows {
			name = strings.ToUpper(name)
		}
		if slices.Contains(names, name) || slices.ContainsFunc(heads, func(h string) bool { return strings.HasPrefix(name, h) }) {
			all = append(all, v)
		}
	}
	return all
}
