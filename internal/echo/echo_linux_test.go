package echo_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"leasehold/internal/echo"
)

// pair opens a terminal: what is written to ours is typed on theirs.
func pair(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

func TestOff(t *testing.T) {
	t.Run("what is typed in silence is read and not shown; afterwards it is shown again", func(t *testing.T) {
		ours, theirs := pair(t)
		restore, err := echo.Off(theirs)
		if err != nil {
			t.Fatal(err)
		}
		typed := func(text string) string {
			t.Helper()
			if _, err := ours.WriteString(text + "\n"); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 100)
			n, err := theirs.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			return string(b[:n])
		}
		if got := typed("hunter2"); got != "hunter2\n" {
			t.Errorf("read in silence: got %q, want it as typed", got)
		}
		if err := restore(); err != nil {
			t.Fatal(err)
		}
		if got := typed("shown"); got != "shown\n" {
			t.Errorf("read afterwards: got %q, want it as typed", got)
		}
		b := make([]byte, 100)
		n, err := ours.Read(b)
		if got := string(b[:n]); err != nil || got != "shown\r\n" {
			t.Errorf("on the screen: got %q, %v, want only what was typed afterwards", got, err)
		}
	})

	t.Run("a file is no terminal", func(t *testing.T) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := echo.Off(f); err == nil {
			t.Error("got no error, want one")
		}
	})
}
