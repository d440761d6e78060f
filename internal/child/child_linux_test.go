package child

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ran is a program that a test runs.
type ran struct {
	*Child
	members []identity // in the order in which they said their roles
	end     chan End
	err     error
}

// run starts the roles and returns once each has said its number.
func run(t *testing.T, k *Keeper, roles string) *ran {
	t.Helper()
	r := &ran{end: make(chan End, 1)}
	up := make(chan *Child, 1)
	go func() {
		end, err := k.Run(program(roles), func(c *Child) { up <- c })
		r.err = err
		r.end <- end
	}()
	select {
	case r.Child = <-up:
	case <-r.end:
		t.Fatalf("start: %v", r.err)
	}
	go func() { _, _ = io.Copy(io.Discard, r.Stderr) }()
	lines := bufio.NewScanner(r.Stdout)
	t.Cleanup(func() {
		r.Kill()
		r.close()
	})
	for range strings.Count(roles, ",") + 1 {
		r.members = append(r.members, said(t, lines))
	}
	return r
}

// said reads the line of one role.
func said(t *testing.T, lines *bufio.Scanner) identity {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("got the end of the output, want a role: %v", lines.Err())
	}
	number, what, _ := strings.Cut(lines.Text(), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid == 0 {
		t.Fatalf("got %q (%s), want a number and a role", lines.Text(), what)
	}
	p, ok := readProcess(pid)
	if !ok {
		return identity{PID: pid} // it has ended by itself
	}
	return p.identity
}

func (r *ran) wait(t *testing.T) End {
	t.Helper()
	select {
	case end := <-r.end:
		if r.err != nil {
			t.Errorf("got %v, want no error", r.err)
		}
		return end
	case <-time.After(time.Minute):
		t.Fatal("the program did not end")
		return End{}
	}
}

// look looks at once.
func (k *Keeper) look() {
	k.mu.Lock()
	k.lookedAt = time.Time{}
	k.mu.Unlock()
	k.Look()
}

// gone reports whether none of them is there, not even as a corpse.
func gone(members ...identity) bool {
	for _, id := range members {
		if p, ok := readProcess(id.PID); ok && p.Start == id.Start {
			return false
		}
	}
	return true
}

func wantGone(t *testing.T, members []identity) {
	t.Helper()
	for n, id := range members {
		if p, ok := readProcess(id.PID); ok && p.Start == id.Start {
			t.Errorf("role %d: got process %d still there (dead: %t), want nothing left", n, id.PID, p.dead)
		}
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// staying are the members that do not end by themselves.
func staying(members []identity, roles string) (all []identity) {
	for n, what := range strings.Split(roles, ",") {
		if what != "daemon" && what != "leave" {
			all = append(all, members[n])
		}
	}
	return all
}

var families = map[string]string{
	"a program alone":                    "sleep",
	"one that ignores requests":          "stubborn",
	"one that has forked":                "fork,stubborn",
	"one whose child has forked":         "fork,fork,stubborn",
	"one whose child has left its group": "session,stubborn",
	"one that has a daemon":              "fork,daemon,stubborn",
	"one whose daemon has a daemon":      "fork,daemon,daemon,fork,stubborn",
}

func TestNothingIsLeft(t *testing.T) {
	k := NewKeeper() // one for all: what is dead and nobody's it would reap
	for name, roles := range families {
		t.Run("of "+name+" when it is killed", func(t *testing.T) {
			t.Parallel()
			r := run(t, k, roles)
			r.Kill()
			if end := r.wait(t); end.Left != 0 || end.State == nil {
				t.Errorf("got %+v, want nothing left", end)
			}
			wantGone(t, staying(r.members, roles))
			await(t, "the burial of who ended by themselves", func() bool { k.look(); return gone(r.members...) })
		})
	}
	for name, roles := range map[string]string{
		"that has forked": "leave,stubborn", "that has a daemon": "daemon,stubborn",
	} {
		t.Run("of one "+name+" when it ends by itself", func(t *testing.T) {
			t.Parallel()
			r := run(t, k, roles)
			if end := r.wait(t); end.Left != 0 || !end.State.Success() {
				t.Errorf("got %+v, want success and nothing left", end)
			}
			wantGone(t, r.members)
		})
	}
}

func TestWhoHasBeenSeenIsRemembered(t *testing.T) {
	k := NewKeeper()
	r := run(t, k, "bare,stubborn")
	k.look()
	if _, err := r.Stdin.WriteString("\n"); err != nil { // the parent ends
		t.Fatal(err)
	}
	if end := r.wait(t); end.Left != 0 {
		t.Errorf("got %+v, want nothing left", end)
	}
	wantGone(t, r.members)
}

func TestOthersAreLeftAlone(t *testing.T) {
	k := NewKeeper()
	first, second := run(t, k, "session,stubborn"), run(t, k, "session,stubborn")
	bystander := exec.CommandContext(t.Context(), os.Args[0])
	bystander.Env = []string{role + "=sleep"}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	k.look()
	first.Kill()
	first.wait(t)
	k.look()
	for _, id := range second.members {
		if !lives(id) {
			t.Errorf("got process %d of another program ended, want it alive", id.PID)
		}
	}
	second.Kill()
	second.wait(t)
	if err := bystander.Process.Kill(); err != nil {
		t.Errorf("got %v, want a process that nobody ran through the keeper alive", err)
	}
	if err := bystander.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want it reaped by whom it belongs to", err)
	}
}

func TestTheAbandonedAreReaped(t *testing.T) {
	k := NewKeeper()
	r := run(t, k, "fork,daemon,stubborn")
	orphan := r.members[2]
	await(t, "the daemon's adoption", func() bool {
		p, ok := readProcess(orphan.PID)
		return ok && p.parent == os.Getpid()
	})
	k.look()
	if err := unix.Kill(orphan.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "its burial", func() bool { k.look(); return gone(orphan) })
	if !lives(r.members[0]) {
		t.Error("got the program ended, want it alive")
	}
	r.Kill()
	r.wait(t)
}

func TestTheUnknownAreReapedAtTheSecondLook(t *testing.T) {
	k := NewKeeper()
	r := run(t, k, "litter,exit")
	r.Kill()
	r.wait(t)
	await(t, "the burial of what it left", func() bool { k.look(); return gone(r.members...) })

	k.adopt.Do(adopt)
	// Nobody waits for it, and it carries no marker: a job that was started and
	// abandoned between two looks.
	p, err := os.StartProcess(os.Args[0], []string{"x"}, &os.ProcAttr{Env: []string{role + "=exit"}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		t.Fatal(err)
	}
	start, _ := startOf(p.Pid)
	await(t, "its end", func() bool { q, ok := readProcess(p.Pid); return ok && q.dead })
	k.look()
	if gone(identity{p.Pid, start}) {
		t.Error("got it reaped at once, want it left to whoever waits for it")
	}
	await(t, "its burial", func() bool { k.look(); return gone(identity{p.Pid, start}) })
}

func TestTerminateAsksTheGroup(t *testing.T) {
	r := run(t, NewKeeper(), "fork,sleep")
	r.Terminate()
	end := r.wait(t)
	if s, ok := end.State.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want it ended by a request", end.State)
	}
	wantGone(t, r.members)
	r.Kill() // its number may be somebody else's: it must signal nobody
}

func TestTheExitStatusIsTheProgramsOwn(t *testing.T) {
	end, err := NewKeeper().Run(program("status,77"), func(*Child) {})
	if err != nil || end.State.ExitCode() != 77 {
		t.Errorf("got %v, %v, want 77", end.State, err)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	k, dir := NewKeeper(), t.TempDir()
	k.Keep(dir)
	for name, c := range map[string]struct {
		path string
		want error
	}{"a program that does not exist": {filepath.Join(dir, "none"), fs.ErrNotExist}, "one that may not be run": {dir, fs.ErrPermission}} {
		t.Run(name, func(t *testing.T) {
			_, err := k.Run(Program{Owner: "acme", Path: c.path}, func(*Child) { t.Error("got it started") })
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			wantRecords(t, dir, 0)
		})
	}
}

func wantRecords(t *testing.T, dir string, want int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(files) != want {
		t.Errorf("got %d files in the folder (%v), want %d", len(files), files, want)
	}
}

func TestAfterOurOwnDeath(t *testing.T) {
	for name, roles := range families {
		t.Run("what is left of "+name+" is found", func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			parent := exec.CommandContext(t.Context(), os.Args[0])
			parent.Env = []string{role + "=keeper," + dir + "," + roles}
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			said(t, lines) // the parent
			var members []identity
			for range strings.Count(roles, ",") + 1 {
				members = append(members, said(t, lines))
			}
			wantRecords(t, dir, 1)
			k := NewKeeper()
			k.Keep(dir)
			if left, err := k.Clear(); len(left) > 0 || err != nil {
				t.Errorf("got %+v, %v, want what another process runs left alone", left, err)
			}

			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // it was killed
			await(t, "the program's end with ours", func() bool { return !lives(members[0]) })
			alive := 0
			for _, id := range staying(members, roles) {
				if lives(id) {
					alive++
				}
			}
			left, err := k.Clear()
			if err != nil {
				t.Fatal(err)
			}
			if alive > 0 && (len(left) != 1 || left[0].Owner != "acme" || left[0].Killed < alive || left[0].Alive > 0) {
				t.Errorf("got %+v, want at least %d killed", left, alive)
			}
			for _, id := range members {
				if lives(id) {
					t.Errorf("got process %d alive, want it found", id.PID)
				}
			}
			wantRecords(t, dir, 0)
		})
	}

	t.Run("an owner's next program kills what his last one left", func(t *testing.T) {
		dir := t.TempDir()
		k := NewKeeper()
		k.Keep(dir)
		orphan := exec.CommandContext(t.Context(), os.Args[0])
		marker := newMarker()
		orphan.Env = []string{role + "=sleep", Marker + "=" + marker}
		orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := orphan.Start(); err != nil {
			t.Fatal(err)
		}
		id := identity{PID: orphan.Process.Pid}
		id.Start, _ = startOf(id.PID)
		if err := k.write(record{Owner: "acme", Marker: marker}); err != nil {
			t.Fatal(err)
		}
		r := run(t, k, "sleep")
		if lives(id) {
			t.Error("got the old process alive beside the new program")
		}
		_ = orphan.Wait() // it was killed
		r.Kill()
		r.wait(t)
		wantRecords(t, dir, 0)
	})

	t.Run("programs that start at the same time leave each other's records alone", func(t *testing.T) {
		k := NewKeeper()
		k.Keep(t.TempDir())
		var all sync.WaitGroup
		for n := range 16 {
			all.Go(func() {
				p := program("exit")
				p.Owner = strconv.Itoa(n)
				end, err := k.Run(p, func(c *Child) { c.close() })
				if err != nil || end.State == nil {
					t.Errorf("got %+v and %v, want the program's end", end, err)
				}
			})
		}
		all.Wait()
		wantRecords(t, k.dir, 0)
	})

	t.Run("a number that somebody else has now is nobody's", func(t *testing.T) {
		bystander := exec.CommandContext(t.Context(), os.Args[0])
		bystander.Env = []string{role + "=sleep"}
		bystander.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		pid := bystander.Process.Pid
		start, _ := startOf(pid)
		k := NewKeeper()
		k.Keep(t.TempDir())
		if err := k.write(record{Owner: "acme", Marker: newMarker(), Leader: identity{pid, start - 1}}); err != nil {
			t.Fatal(err)
		}
		left, err := k.Clear()
		if len(left) > 0 || err != nil || !lives(identity{pid, start}) {
			t.Errorf("got %+v, %v, want a stranger left alone", left, err)
		}
		_ = bystander.Process.Kill()
		_ = bystander.Wait() // we killed it
		wantRecords(t, k.dir, 0)
	})

	t.Run("a file that is no record stops nothing", func(t *testing.T) {
		k := NewKeeper()
		k.Keep(t.TempDir())
		for name, text := range map[string]string{"half.json.tmp": `{"own`, "other.json": `{}`, "x": "x"} {
			if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := k.Clear(); len(left) > 0 || err != nil {
			t.Errorf("got %+v, %v, want nothing", left, err)
		}
		wantRecords(t, k.dir, 2) // a half-written one of ours is removed
	})
}

func TestStat(t *testing.T) {
	const rest = " S 1 77 78 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2"
	for _, name := range []string{"sh", "a b", "a) S 9 9 9", "(((", ")"} {
		p, ok := parseStat(5, []byte("5 ("+name+")"+rest))
		if want := (process{identity{5, 4242}, 1, 77, 78, false}); !ok || p != want {
			t.Errorf("a process called %q: got %+v, %t, want %+v", name, p, ok, want)
		}
	}
	for _, line := range []string{"", "5 (sh", "5 (sh) S 1 2 3", strings.Replace("5 (sh)"+rest, "77", "x", 1)} {
		if _, ok := parseStat(5, []byte(line)); ok {
			t.Errorf("%q: got a process, want none", line)
		}
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("5 (sh) Z 1 77 78 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2"))
	f.Fuzz(func(_ *testing.T, line []byte) {
		parseStat(5, line)
		markerIn(line)
	})
}
