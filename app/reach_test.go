package app_test

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"leasehold/app"
	"leasehold/internal/fault"
)

// A process that is being killed still has its socket: the kernel takes a
// connection and cuts it.
func TestProcessThatEndsBeforeItAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	env := []string{"LEASEHOLD_NODE_DATA_DIR=" + t.TempDir(), "LEASEHOLD_ADMIN_SOCKET=" + path}
	for _, args := range [][]string{{"status"}, {"status", "--ready"}, {"events", "tail"}} {
		t.Run(strings.Join(args, " ")+" takes it for one that is gone", func(t *testing.T) {
			var out, errs bytes.Buffer
			got := app.Main(t.Context(), app.Options{Types: app.Builtin(), Args: args, Env: env, Stdout: &out, Stderr: &errs})
			if got != fault.ExitNotRunning || !strings.Contains(errs.String(), "leasehold is not running") {
				t.Errorf("got %d, %q, want %d and that it is not running", got, errs.String(), fault.ExitNotRunning)
			}
		})
	}
}

func TestNobodyRuns(t *testing.T) {
	const words = "if it runs with another data folder, name it: --data-dir FOLDER"
	socket := "LEASEHOLD_ADMIN_SOCKET=" + filepath.Join(t.TempDir(), "s")
	for _, c := range []struct {
		name string
		args []string
		want bool
	}{
		{"who asked in the default folder is told that there may be another", nil, true},
		{"who named a folder is not", []string{"--data-dir", t.TempDir()}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			env := []string{"HOME=" + t.TempDir(), "XDG_DATA_HOME=" + t.TempDir(), "STATE_DIRECTORY=" + t.TempDir(), socket}
			got := app.Main(t.Context(), app.Options{Types: app.Builtin(), Args: append([]string{"status", "--ready"}, c.args...), Env: env, Stdout: &out, Stderr: &errs})
			if got != fault.ExitNotRunning || strings.Contains(errs.String(), words) != c.want {
				t.Errorf("got %d, %q, want %d, with those words: %v", got, errs.String(), fault.ExitNotRunning, c.want)
			}
		})
	}
}
