package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"leasehold/internal/fault"
)

// holder opens the database and says so, until it is killed.
func holder(path string) int {
	if _, err := Open(context.Background(), path, Options{Name: "the holder", ReserveBytes: -1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("open")
	select {}
}

// startHolder starts another process that holds the database.
func startHolder(t *testing.T, path string) *os.Process {
	t.Helper()
	cmd := start(t, "holder", path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("got %q, %v from the holder, want that it is open", line, err)
	}
	return cmd.Process
}

func TestLock(t *testing.T) {
	t.Run("a second process is told who has the database, and takes over when that one is killed", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "leasehold.db")
		first := startHolder(t, path)
		_, err := Open(t.Context(), path, Options{})
		var locked *LockedError
		if !errors.As(err, &locked) || !fault.Is(err, fault.Busy) {
			t.Fatalf("got %v, want a busy database", err)
		}
		want(t, "pid", locked.Owner.PID, first.Pid)
		want(t, "name", locked.Owner.Name, "the holder")
		want(t, "path", locked.Path, path)
		wantText(t, err, path, fmt.Sprintf("process %d on ", first.Pid), "node the holder", "stop it first")

		waiting, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := WaitForLock(waiting, path, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it is held: got %v, want the caller's deadline", err)
		}
		must(t, first.Kill())
		killed := time.Now()
		must(t, WaitForLock(t.Context(), path, time.Millisecond))
		s := openAt(t, path, Options{Name: "the second"})
		if took := time.Since(killed); took > busy {
			t.Errorf("got %v until the takeover, want it at once", took)
		}
		want(t, "owner", readOwner(path).Name, "the second")
		must(t, s.Close())
		want(t, "owner after the end", readOwner(path), Owner{})
	})

	t.Run("the same process is refused a second time", func(t *testing.T) {
		s := openTest(t, Options{})
		_, err := Open(t.Context(), s.path, Options{})
		want(t, "busy", fault.Is(err, fault.Busy), true)
		want(t, "exit code", fault.ExitCode(err), fault.ExitTemporary)
	})

	t.Run("a closed store is free, and one that is not there yet, too", func(t *testing.T) {
		s := openTest(t, Options{})
		must(t, s.Close())
		must(t, WaitForLock(t.Context(), s.path, time.Hour))
		must(t, WaitForLock(t.Context(), s.path+"-none", time.Hour))
		openAt(t, s.path, Options{})
	})

	t.Run("the lock survives another opening and closing of the file in this process", func(t *testing.T) {
		s := openTest(t, Options{})
		f, err := os.Open(s.path)
		must(t, err)
		must(t, f.Close())
		r, err := OpenReader(t.Context(), s.path, Options{})
		must(t, err)
		must(t, r.Close())
		_, err = Open(t.Context(), s.path, Options{})
		want(t, "busy", fault.Is(err, fault.Busy), true)
		take(t, s, grant(t, s, "i"), "1")
	})

	t.Run("a name that is a link is refused, hard or symbolic", func(t *testing.T) {
		s := openTest(t, Options{})
		must(t, s.Close())
		dir := filepath.Dir(s.path)
		must(t, os.Symlink(s.path, filepath.Join(dir, "link.db")))
		_, err := Open(t.Context(), filepath.Join(dir, "link.db"), Options{})
		want(t, "symbolic: invalid", fault.Is(err, fault.Invalid), true)
		wantText(t, err, "symbolic link", "name the file itself")
		must(t, os.Link(s.path, filepath.Join(dir, "hard.db")))
		for _, name := range []string{s.path, filepath.Join(dir, "hard.db")} {
			_, err = Open(t.Context(), name, Options{})
			want(t, "hard: invalid", fault.Is(err, fault.Invalid), true)
			wantText(t, err, "2 names")
		}
	})

	t.Run("a folder that is a link leads to the one file", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
		must(t, os.Symlink("real", filepath.Join(dir, "link")))
		s := openAt(t, filepath.Join(dir, "link", "x.db"), Options{})
		want(t, "path", s.path, filepath.Join(dir, "real", "x.db"))
		_, err := Open(t.Context(), filepath.Join(dir, "real", "x.db"), Options{})
		want(t, "busy", fault.Is(err, fault.Busy), true)
	})

	t.Run("a file that was replaced is not mistaken for the one that is locked", func(t *testing.T) {
		s := openTest(t, Options{})
		must(t, os.Rename(s.path, s.path+".moved"))
		must(t, os.WriteFile(s.path, nil, 0o600))
		_, err := lockDatabase(s.path, "", time.Now())
		must(t, err) // another file: another lock, and the old holder finds out by itself
		want(t, "gone", fault.Is(s.CheckFiles(), fault.Gone), true)
	})
}
