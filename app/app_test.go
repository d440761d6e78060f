package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/app"
	"leasehold/channel"
	"leasehold/internal/fault"
)

// stubborn is a channel type whose connections do not end when they are asked to.
func stubborn(freed <-chan struct{}) channel.Spec {
	return channel.Define(channel.Definition[struct{}]{
		Name: "stubborn", Summary: "Does not stop.",
		New: func(context.Context, struct{}) (channel.Channel, error) { return stubbornChannel{freed}, nil },
	})
}

type stubbornChannel struct{ freed <-chan struct{} }

func (c stubbornChannel) Run(_ context.Context, link *channel.Link) error {
	link.Ready(channel.Info{})
	<-c.freed
	return nil
}

// output is a log that is read while it is written.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) await(t *testing.T, word string) {
	t.Helper()
	for deadline := time.Now().Add(longer); !strings.Contains(o.String(), word); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came: %s", word, o.String())
		}
	}
}

func TestMainFunction(t *testing.T) {
	t.Run("an embedder's own type is built, and a connection that will not end does not hold up the stop", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "leasehold.toml")
		config := fmt.Sprintf("[node]\ndata_dir = %q\ndrain_timeout = \"3s\"\n[[installation]]\nid = \"a\"\ntype = \"stubborn\"\n", dir)
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		freed := make(chan struct{})
		defer close(freed)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out, log output
		ended := make(chan int, 1)
		go func() {
			ended <- app.Main(ctx, app.Options{
				Types: append(app.Builtin(), stubborn(freed)), Args: []string{"run", "--config", file}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
			})
		}()
		log.await(t, `"connected"`)
		began := time.Now()
		cancel()
		code := <-ended
		if took := time.Since(began); took > 3*time.Second+busy*5*time.Second { // the drain, and what a busy machine takes to close
			t.Errorf("stop took %v, want less than the drain and the time to close", took)
		}
		if code != fault.ExitOK && code != fault.ExitTemporary {
			t.Errorf("exit code: got %d, want success or a temporary failure: %s", code, log.String())
		}
	})

	t.Run("an error is shown once, on stderr", func(t *testing.T) {
		var out, log output
		code := app.Main(t.Context(), app.Options{Types: app.Builtin(), Args: []string{"nothing"}, Stdout: &out, Stderr: &log})
		if code != fault.ExitUsage || out.String() != "" || strings.Count(log.String(), "has no command") != 1 {
			t.Errorf("got %d, stdout %q, stderr %q, want 2 and one line on stderr", code, out.String(), log.String())
		}
	})
}
