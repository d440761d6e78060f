//go:build unix

package evidence_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// box is a folder in which the program lives: leasehold.toml and its data.
type box struct {
	*testing.T
	dir    string
	env    []string // beside what every shell gives
	logs   string   // what the processes said, one file each
	lives  int
	begins func() // called before each; nil = nobody counts
}

// newBox makes a box in a new folder under parent; "" = the system's temporary one.
func newBox(t *testing.T, parent string) *box {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "lh-") //nolint:usetesting // it is short: a socket's path has 107 bytes
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return &box{T: t, dir: dir, logs: t.TempDir()}
}

func (w *box) data(name string) string { return filepath.Join(w.dir, "data", name) }
func (w *box) database() string        { return w.data("leasehold.db") }

// configure writes the config file.
func (w *box) configure(toml string) {
	w.Helper()
	must(w.T, os.WriteFile(filepath.Join(w.dir, "leasehold.toml"), []byte(toml), 0o600))
}

// process is the program, running.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	began time.Time // before it was executed
	log   string    // the file of its standard error
	ended chan struct{}
}

// command is the program with what a person's shell would give it, and none of
// the variables that mean something to it.
func (w *box) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.Context(), binary(w.T), args...)
	cmd.Dir = w.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + w.dir}, w.env...)
	return cmd
}

// start runs the program in the world's folder. It is killed with the test.
func (w *box) start() *process {
	w.Helper()
	w.lives++
	p := &process{t: w.T, log: filepath.Join(w.logs, fmt.Sprint(w.lives)), ended: make(chan struct{})}
	out, err := os.Create(p.log)
	must(w.T, err)
	defer func() { must(w.T, out.Close()) }() // the process has its own
	p.cmd = w.command("run")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if w.begins != nil {
		w.begins()
	}
	p.began = time.Now()
	must(w.T, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // how it ended is in its ProcessState
		close(p.ended)
	}()
	w.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
		if crash := regexp.MustCompile(`(?m)^(panic:|fatal error:|WARNING: DATA RACE).*`).FindString(p.said()); crash != "" {
			w.Errorf("process %d: %s\n%s", p.cmd.Process.Pid, crash, p.tail())
		}
		if w.Failed() {
			w.Logf("process %d said last:\n%s", p.cmd.Process.Pid, p.tail())
		}
	})
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *process) tail() string {
	all := p.said()
	return all[max(0, len(all)-3000):]
}

// saying waits until the process has said all of the words.
func (p *process) saying(words ...string) {
	p.t.Helper()
	await(p.t, longest, func() (string, bool) {
		said := p.said()
		for _, w := range words {
			if !strings.Contains(said, w) {
				return fmt.Sprintf("process %d says nothing of %q:\n%s", p.pid(), w, p.tail()), false
			}
		}
		return "", true
	})
}

// signal sends s, unless the process has ended already.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// over reports whether it has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// alive fails the test when the process has ended.
func (p *process) alive() {
	p.t.Helper()
	if p.over() {
		p.t.Fatalf("process %d ended by itself: %v\n%s", p.pid(), p.cmd.ProcessState, p.tail())
	}
}

// kill ends it as a power cut of one process does.
func (p *process) kill() {
	p.t.Helper()
	p.alive()
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// exit waits for its end and returns its exit code.
func (p *process) exit(patience time.Duration) int {
	p.t.Helper()
	await(p.t, patience, func() (string, bool) { return fmt.Sprintf("process %d does not end:\n%s", p.pid(), p.tail()), p.over() })
	return p.cmd.ProcessState.ExitCode()
}

// stop asks it to end, and wants a success within the time that a drain may take.
func (p *process) stop() {
	p.t.Helper()
	p.alive()
	p.signal(syscall.SIGTERM)
	want(p.t, "exit code after SIGTERM", p.exit(drainTimeout), 0)
}

// drainTimeout is the default of node.drain_timeout.
const drainTimeout = 20 * time.Second

// tell runs a command in the world's folder and returns what it printed.
func (w *box) tell(args ...string) (out string, code int) {
	w.Helper()
	cmd := w.command(args...)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}
