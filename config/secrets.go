package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Secrets reads what references refer to. It reads files each time it is asked,
// so that a rotated one is found; the environment is fixed.
type Secrets struct {
	vars variables
	goos string
	gids []int  // groups of the process
	run  string // the folder of secrets that containers mount
}

// NewSecrets makes a Secrets over an environment, as os.Environ returns it.
func NewSecrets(env []string) *Secrets {
	gids, err := os.Getgroups()
	if err != nil {
		gids = nil // Windows has none
	}
	return &Secrets{readEnv(env, runtime.GOOS), runtime.GOOS, append(gids, os.Getegid()), "/run/secrets"}
}

// secretLimit bounds a secret: 64 KiB, more than any key or token; more is some
// other file.
const secretLimit = 64 << 10

// Resolve returns the secret behind a reference; kind is env, file or credential.
// An error names the variable or the file and the fix, never a value.
func (s *Secrets) Resolve(kind, name string) (string, error) {
	switch kind {
	case "env":
		value := s.vars[name]
		if s.goos == "windows" {
			value = s.vars[strings.ToUpper(name)]
		}
		if value == "" {
			return "", fmt.Errorf("environment variable %s is not set; set it for the service and restart", name)
		}
		return value, nil
	case "file":
		return s.file(name)
	case "credential":
		dir := s.vars["CREDENTIALS_DIRECTORY"]
		if dir == "" {
			return "", fmt.Errorf("credential %s: CREDENTIALS_DIRECTORY is not set; add LoadCredential=%s:PATH to the systemd unit", name, name)
		}
		if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
			return "", errors.New("a credential is the name of a file in $CREDENTIALS_DIRECTORY, without a folder")
		}
		return s.file(filepath.Join(dir, name))
	}
	return "", fmt.Errorf("secrets by %s are %s; use env, file or credential", bare(kind), notYet)
}

// file reads a secret file that nobody else can read. Trailing newlines, which
// editors add, are not part of it.
func (s *Secrets) file(path string) (string, error) {
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("secret file %s: %w", path, cause(err))
	} else if !info.Mode().IsRegular() { // opening a pipe could wait for ever
		return "", fmt.Errorf("secret file %s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("secret file %s: %w", path, cause(err))
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("secret file %s: %w", path, cause(err))
	}
	if err := s.private(path, info); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, secretLimit+1))
	if err != nil {
		return "", fmt.Errorf("secret file %s: %w", path, cause(err))
	}
	b = bytes.TrimRight(b, "\r\n")
	switch {
	case len(b) == 0:
		return "", fmt.Errorf("secret file %s is empty", path)
	case len(b) > secretLimit:
		return "", fmt.Errorf("secret file %s is larger than 64 KiB", path)
	case !utf8.Valid(b):
		return "", fmt.Errorf("secret file %s is not UTF-8 text", path)
	}
	return string(b), nil
}

// private refuses a file that others can read: anybody, or a group that is not
// the process's own. Where the system that mounted the file guards it, its mode
// says nothing. Windows has no such modes.
func (s *Secrets) private(path string, info fs.FileInfo) error {
	mode := info.Mode().Perm()
	if s.goos == "windows" || mode&0o077 == 0 || s.mounted(path) {
		return nil
	}
	if mode&0o007 != 0 {
		return fmt.Errorf("secret file %s can be read by everybody (mode %04o); run chmod 600 %s", path, mode, path)
	}
	if !ownGroup(info, s.gids) {
		return fmt.Errorf("secret file %s can be read by a group that leasehold is not in (mode %04o); run chmod 600 %s", path, mode, path)
	}
	return nil
}

// mounted reports whether the file is in a folder that systemd or a container
// runtime fills: the credentials, /run/secrets, or a Kubernetes projected volume,
// which has a symlink ..data beside the file.
func (s *Secrets) mounted(path string) bool {
	for _, dir := range []string{s.vars["CREDENTIALS_DIRECTORY"], s.run} {
		if dir != "" && (within(path, dir) || within(resolved(path), resolved(dir))) {
			return true
		}
	}
	data, err := os.Lstat(filepath.Join(filepath.Dir(path), "..data"))
	return err == nil && data.Mode()&fs.ModeSymlink != 0
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolved is the path without symlinks; as it is, where that cannot be told.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

// cause is an error of the file system without the path, which stands before it.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
