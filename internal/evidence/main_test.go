//go:build unix

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"leasehold/internal/loop"
)

// binaryEnv tells a test that runs in a process of its own where the program is.
const binaryEnv = "LEASEHOLD_EVIDENCE_BINARY"

// built is where the program is built to, by the first test that asks for it.
var built struct {
	sync.Mutex
	dir, path string
}

func TestMain(m *testing.M) {
	if path := os.Getenv(roleEnv); path != "" {
		if err := locker(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// As the program does, before anything else opens a database: the tests read its
	// files, and with POSIX locks each close of one would drop SQLite's own.
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// binary is the program, built as it is shipped, or with the race detector where
// the tests have it.
func binary(t *testing.T) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path := os.Getenv(binaryEnv); path != "" {
		return path
	}
	if built.path != "" {
		return built.path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "lh-") //nolint:usetesting // it outlives the test that needs it first
		must(t, err)
		built.dir = dir
	}
	path := filepath.Join(built.dir, "leasehold")
	args, cgo := []string{"build", "-o", path, "leasehold"}, "CGO_ENABLED=0"
	if raced {
		args, cgo = []string{"build", "-race", "-o", path, "leasehold"}, "CGO_ENABLED=1"
	}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	built.path = path
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[V comparable](t testing.TB, what string, got, wanted V) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// await looks until so holds, and fails with what it said last.
func await(t testing.TB, patience time.Duration, so func() (string, bool)) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		text, ok := so()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, text)
		}
		pause(t, 5*time.Millisecond)
	}
}

// pause lets time pass, for what is a span of time by its nature: the moment of a
// kill, the length of a stop, a while in which something must not happen.
func pause(t testing.TB, d time.Duration) {
	t.Helper()
	if err := loop.Sleep(context.WithoutCancel(t.Context()), d); err != nil {
		t.Fatal(err)
	}
}
