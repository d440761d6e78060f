// Package need is how a test asks for what a machine may lack: root, a tool.
//
// A test whose need is not met is skipped on a person's machine, and "make test"
// lists it at the end with the way to run it. Where CI is set it fails instead:
// a promise that nobody checked is not kept. No other package skips a test.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// listEnv names the file, by its absolute path, that "make test" reads the
// skipped tests from.
const listEnv = "LEASEHOLD_SKIPPED"

// Root asks for the rights to mount a file system or to change an owner.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		unmet(t, "root", "run make test as root, or under sudo -E")
	}
}

// Mounts asks for a private mount namespace, in which a test may fill, freeze or
// remove a file system that nobody else sees.
func Mounts(t testing.TB) {
	t.Helper()
	Root(t)
	Tool(t, "unshare", "util-linux")
	Tool(t, "mount", "mount")
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		unmet(t, "a private mount namespace", fmt.Sprintf("run it outside the container (%v: %s)", err, out))
	}
}

// Tool asks for a program of this name in the PATH; pkg is what Debian calls the
// package that it comes in.
func Tool(t testing.TB, name, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		unmet(t, name, "install the package "+pkg)
	}
}

// Postgres asks for a PostgreSQL server of version 14 or newer, and returns the
// folder of its programs: the newest that Debian's packages have installed, or that
// of initdb in the PATH.
func Postgres(t testing.TB) string {
	t.Helper()
	newest, dir := 0, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
	for _, initdb := range found {
		bin := filepath.Dir(initdb)
		if v, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && v > newest {
			newest, dir = v, bin
		}
	}
	if newest >= oldestPostgres {
		return dir
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		unmet(t, "a PostgreSQL server", "install the package postgresql")
	}
	return filepath.Dir(initdb)
}

// oldestPostgres is the oldest version that a store may be on.
const oldestPostgres = 14

// unmet ends the test: failed in CI, elsewhere skipped and listed.
func unmet(t testing.TB, what, next string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("needs %s, and CI skips nothing: %s", what, next)
	}
	if path := os.Getenv(listEnv); path != "" {
		if err := list(path, fmt.Sprintf("%s: needs %s: %s\n", t.Name(), what, next)); err != nil {
			t.Fatalf("list a skipped test: %v", err)
		}
	}
	t.Skipf("needs %s: %s", what, next)
}

// list appends a line. Packages are tested side by side, and one short write at
// the end of a file is not torn.
func list(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		_ = f.Close() // the write's error says more
		return err
	}
	return f.Close()
}
