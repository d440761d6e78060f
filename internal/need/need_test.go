package need_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"leasehold/internal/need"
)

// asked is a test that stands in for the one that asks.
type asked struct {
	testing.TB
	failed, skipped string
}

func (a *asked) Fatalf(format string, args ...any) {
	a.failed = fmt.Sprintf(format, args...)
	panic(a)
}

func (a *asked) Skipf(format string, args ...any) {
	a.skipped = fmt.Sprintf(format, args...)
	panic(a)
}

func ask(t *testing.T, f func(testing.TB)) (a *asked) {
	t.Helper()
	a = &asked{TB: t}
	defer func() {
		if v := recover(); v != nil && v != a {
			panic(v)
		}
	}()
	f(a)
	return a
}

func TestNeed(t *testing.T) {
	missing := func(t testing.TB) { need.Tool(t, "no-such-tool", "no-such-package") }
	const why = "no-such-tool: install the package no-such-package"

	t.Run("what is there lets the test go on", func(t *testing.T) {
		a := ask(t, func(t testing.TB) { need.Tool(t, "go", "golang") })
		if a.failed != "" || a.skipped != "" {
			t.Errorf("got failed %q, skipped %q, want neither", a.failed, a.skipped)
		}
	})

	t.Run("what is missing skips the test and lists it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "skipped")
		t.Setenv("CI", "")
		t.Setenv("LEASEHOLD_SKIPPED", path)
		for range 2 {
			if a := ask(t, missing); a.skipped != "needs "+why || a.failed != "" {
				t.Errorf("got failed %q, skipped %q, want it skipped with the next step", a.failed, a.skipped)
			}
		}
		got, err := os.ReadFile(path)
		line := t.Name() + ": needs " + why + "\n"
		if err != nil || string(got) != line+line {
			t.Errorf("got %q and %v, want %q twice", got, err, line)
		}
	})

	t.Run("what is missing fails the test in CI", func(t *testing.T) {
		t.Setenv("CI", "true")
		want := "needs no-such-tool, and CI skips nothing: install the package no-such-package"
		if a := ask(t, missing); a.failed != want || a.skipped != "" {
			t.Errorf("got failed %q, skipped %q, want %q", a.failed, a.skipped, want)
		}
	})

	t.Run("a list that cannot be written fails the test", func(t *testing.T) {
		t.Setenv("CI", "")
		t.Setenv("LEASEHOLD_SKIPPED", filepath.Join(t.TempDir(), "missing", "skipped"))
		if a := ask(t, missing); a.failed == "" || a.skipped != "" {
			t.Errorf("got failed %q, skipped %q, want a failure", a.failed, a.skipped)
		}
	})
}
