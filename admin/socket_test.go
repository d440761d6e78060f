package admin

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/internal/fault"
)

// serveOn runs Serve and returns what stops it and hands on its error.
func serveOn(t *testing.T, path string, h http.Handler) (stop func() error) {
	t.Helper()
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, h, slog.New(slog.DiscardHandler)) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"version":"7"}`) })

func TestSocket(t *testing.T) {
	t.Run("a client is answered, and a stop removes the socket", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		stop := serveOn(t, path, hello)
		c := NewClient(Socket(path))
		defer c.Close()
		v, err := c.Version(t.Context())
		if err != nil || v.Version != "7" {
			t.Fatalf("Version: got %v, %v, want 7", v, err)
		}
		if err := stop(); err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("socket after the stop: got %v, want that it does not exist", err)
		}
		if _, err := c.Version(t.Context()); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("Version after the stop: got %v, want ErrNoAnswer", err)
		}
	})

	t.Run("only the owner and the group may open it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		serveOn(t, path, hello)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := info.Mode().Perm(), fs.FileMode(0o660); got != want {
			t.Errorf("permissions: got %o, want %o", got, want)
		}
	})

	t.Run("the socket of a process that is gone is replaced", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		serveOn(t, path, hello)
		if _, err := NewClient(Socket(path)).Version(t.Context()); err != nil {
			t.Errorf("got %v, want an answer", err)
		}
	})

	t.Run("a socket that somebody answers on is left to him", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		serveOn(t, path, hello)
		if _, err := Listen(t.Context(), path); !fault.Is(err, fault.Busy) {
			t.Errorf("second Listen: got %v, want fault.Busy", err)
		}
		if _, err := NewClient(Socket(path)).Version(t.Context()); err != nil {
			t.Errorf("the first one after it: got %v, want an answer", err)
		}
	})

	t.Run("a process that ends late leaves its successor's socket", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		stop := serveOn(t, path, hello)
		if err := os.Remove(path); err != nil { // the successor took it for one of a process that is gone
			t.Fatal(err)
		}
		serveOn(t, path, hello)
		if err := stop(); err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
		if _, err := NewClient(Socket(path)).Version(t.Context()); err != nil {
			t.Errorf("the successor: got %v, want an answer", err)
		}
	})

	t.Run("a file that is no socket is never removed", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(t.Context(), path); !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want fault.Conflict", err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
			t.Errorf("the file: got %q, %v, want it untouched", b, err)
		}
	})

	t.Run("a path too long for a socket is refused with the key to set", func(t *testing.T) {
		_, err := Listen(t.Context(), filepath.Join(t.TempDir(), strings.Repeat("x", 104)))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "admin.socket") {
			t.Errorf("got %v, want fault.Invalid that names admin.socket", err)
		}
	})

	t.Run("a stop ends streams at once and lets a short request end", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		entered, release := make(chan struct{}, 2), make(chan struct{})
		stop := serveOn(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			if r.URL.Path == "/v1/events/tail" {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				ctx, cancel := streaming(r)
				defer cancel()
				<-ctx.Done()
				close(release) // the short one ends after the stream, so it outlived the stop
				return
			}
			<-release
			hello(w, r)
		}))
		c := NewClient(Socket(path))
		tail := make(chan error, 1)
		go func() {
			answer, err := c.send(t.Context(), http.MethodGet, "/v1/events/tail", nil, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				closeBody(answer)
			}
			tail <- err
		}()
		short := make(chan error, 1)
		go func() {
			_, err := c.Version(t.Context())
			short <- err
		}()
		<-entered
		<-entered
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
		if took := time.Since(began); took >= stopWithin {
			t.Errorf("stop took %v, want less than %v", took, stopWithin)
		}
		if err := <-short; err != nil {
			t.Errorf("the short request: got %v, want its answer", err)
		}
		if err := <-tail; err != nil {
			t.Errorf("the stream: got %v, want an end of file", err)
		}
	})
}
