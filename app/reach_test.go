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
