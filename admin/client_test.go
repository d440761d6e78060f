package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/internal/fault"
)

// mute listens as a stopped process does: the kernel takes the connection, and
// nobody reads from it.
func mute(t *testing.T) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := NewClient(Socket(path))
	if c.within != answerWithin {
		t.Fatalf("bound of a call over a socket: got %v, want %v", c.within, answerWithin)
	}
	c.within = 50 * time.Millisecond
	t.Cleanup(c.Close)
	return c
}

func TestMuteProcess(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Client) error{
		"a question": func(ctx context.Context, c *Client) error { _, err := c.Status(ctx); return err },
		"a change":   func(ctx context.Context, c *Client) error { return c.RemoveInstallation(ctx, "a") },
		"a task":     func(ctx context.Context, c *Client) error { _, err := c.RunTask(ctx, "sweeper"); return err },
		"a tail": func(ctx context.Context, c *Client) error {
			return c.Tail(ctx, url.Values{}, func(Event) error { return nil }, func(error) {})
		},
	} {
		t.Run(name+" to a process that never answers ends with what to do", func(t *testing.T) {
			err := ask(t.Context(), mute(t))
			if !errors.Is(err, errMute) || !strings.Contains(err.Error(), "does not answer") {
				t.Fatalf("got %v, want errMute", err)
			}
			if errors.Is(err, ErrNoAnswer) {
				t.Errorf("got %v, want no ErrNoAnswer: somebody is there", err)
			}
			if got, want := fault.ExitCode(err), fault.ExitFailed; got != want {
				t.Errorf("exit code: got %d, want %d", got, want)
			}
		})
	}

	t.Run("an answer that stops in its middle ends the call", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		serveOn(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		c := NewClient(Socket(path))
		defer c.Close()
		c.within = 50 * time.Millisecond
		if _, err := c.Version(t.Context()); !errors.Is(err, errMute) {
			t.Errorf("got %v, want errMute", err)
		}
	})

	t.Run("this process itself has all the time of the context", func(t *testing.T) {
		if got := NewClient(InProcess(http.NotFoundHandler())).within; got != 0 {
			t.Errorf("bound: got %v, want none", got)
		}
	})
}
