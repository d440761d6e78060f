//go:build linux

package evidence_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"leasehold/internal/need"
)

// insideEnv names the test that runs in a process of its own.
const insideEnv = "LEASEHOLD_EVIDENCE_INSIDE"

// alone runs f in a process of its own whose mounts nobody else sees: they end
// with it. It is for top-level tests.
func alone(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv(insideEnv) == t.Name() {
		must(t, syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		f(t)
		return
	}
	need.Mounts(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), insideEnv+"="+t.Name(), binaryEnv+"="+binary(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in its own process: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in its own process: got\n%s\nwant a test that passed", out)
	}
	t.Logf("in its own process:\n%s", out)
}

// tmpfs mounts a small file system and returns its folder.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lh-") //nolint:usetesting // it is short: a socket's path has 107 bytes
	must(t, err)
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() {
		must(t, syscall.Unmount(dir, syscall.MNT_DETACH))
		must(t, os.Remove(dir))
	})
	return dir
}

// free is the room that is left on the file system of dir.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	var st syscall.Statfs_t
	must(t, syscall.Statfs(dir, &st))
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // their types differ by system
}
