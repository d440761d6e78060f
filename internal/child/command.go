package child

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Check says what keeps a command of a config, a program with its arguments, from
// being run: a path that depends on the folder in which we were started, most often.
// It does not look whether the program is there.
func Check(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return errors.New(`is empty; write command = ["/path/to/program", "argument"]`)
	}
	if name := command[0]; !filepath.IsAbs(name) && filepath.Base(name) != name {
		return fmt.Errorf("%q depends on the folder that Leasehold was started in; write an absolute path, or a name in the PATH", name)
	}
	if slices.ContainsFunc(command, hasNUL) {
		return errors.New("has a NUL byte in it")
	}
	return nil
}

// CheckVariable says what keeps a variable from being one of a program's
// environment. reserved are those that the program gets from us. The value is not
// repeated.
func CheckVariable(name, value string, reserved ...string) error {
	switch {
	case name == "" || strings.Contains(name, "=") || hasNUL(name):
		return fmt.Errorf("%q is no name of a variable", name)
	case name == Marker || slices.Contains(reserved, name):
		return fmt.Errorf("%s is set by Leasehold; remove it", name)
	case hasNUL(value):
		return fmt.Errorf("%s: has a NUL byte in it", name)
	}
	return nil
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

// Basics picks from an environment, as os.Environ returns it, what every program
// gets: PATH, HOME, TZ and the like. The rest may hold the secrets of others.
func Basics(environ []string) []string { return basics(environ, runtime.GOOS == "windows") }

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
