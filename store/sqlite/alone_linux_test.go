package sqlite

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"leasehold/internal/fault"
	"leasehold/internal/need"
)

// insideEnv names the test that runs in a process of its own.
const insideEnv = "LEASEHOLD_TEST_INSIDE"

// apart runs f in a process of its own. The test's name must be that of a
// top-level test.
func apart(t *testing.T, attr *syscall.SysProcAttr, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv(insideEnv) == t.Name() {
		f(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "2m")
	cmd.Env = append(os.Environ(), insideEnv+"="+t.Name())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in its own process: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in its own process: got\n%s\nwant a test that passed", out)
	}
}

// alone runs f in a process of its own whose mounts nobody else sees.
func alone(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv(insideEnv) == "" {
		need.Mounts(t)
	}
	apart(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}, func(t *testing.T) {
		must(t, syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		f(t)
	})
}

// tmpfs mounts a small file system and returns its folder.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestSingleFileMount(t *testing.T) {
	alone(t, func(t *testing.T) {
		s := openTest(t, Options{})
		must(t, s.Close())
		must(t, syscall.Mount(s.path, s.path, "", syscall.MS_BIND, ""))
		_, err := Open(t.Context(), s.path, Options{})
		want(t, "invalid", fault.Is(err, fault.Invalid), true)
		wantText(t, err, "mounted as a single file", "mount its folder instead")
		must(t, syscall.Unmount(s.path, 0))
		openAt(t, s.path, Options{})
	})
}
