package admin

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"leasehold/internal/need"
)

// nobody is a user id that is neither root's nor ours.
const nobody = 65534

// askAs sends a request from a thread whose user is uid, and returns the answer.
func askAs(t *testing.T, uid int, path string) string {
	t.Helper()
	answer := make(chan string, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its user
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			answer <- "setresuid: " + errno.Error()
			return
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			answer <- "socket: " + err.Error()
			return
		}
		defer func() { _ = syscall.Close(fd) }()
		if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
			answer <- "connect: " + err.Error()
			return
		}
		if _, err := syscall.Write(fd, []byte("GET /v1/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
			answer <- "write: " + err.Error()
			return
		}
		var all []byte
		b := make([]byte, 4096)
		for n, err := syscall.Read(fd, b); err == nil && n > 0; n, err = syscall.Read(fd, b) {
			all = append(all, b[:n]...)
		}
		answer <- string(all)
	}()
	return <-answer
}

func TestPeer(t *testing.T) {
	t.Run("the kernel tells who calls: another user is refused even where the socket is open to all", func(t *testing.T) {
		need.Root(t)
		dir, err := os.MkdirTemp("", "peer") //nolint:usetesting // no other user can enter t.TempDir
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		path := filepath.Join(dir, "s")
		serveOn(t, path, hello)
		for name, mode := range map[string]os.FileMode{dir: 0o755, path: 0o666} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		if got := askAs(t, nobody, path); !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "user id 65534 may not speak") {
			t.Errorf("another user: got %q, want 403 with his id", got)
		}
		if got := askAs(t, 0, path); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("root: got %q, want an answer", got)
		}
	})

	t.Run("a caller of another user is refused with what to do", func(t *testing.T) {
		err := allowed(os.Geteuid() + 1)
		if err == nil || !strings.Contains(err.Error(), "sudo") {
			t.Errorf("got %v, want a refusal that says how", err)
		}
		if err := errors.Join(allowed(os.Geteuid()), allowed(0)); err != nil {
			t.Errorf("ourselves and root: got %v, want nil", err)
		}
		h := guard(hello)
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, err), http.MethodGet, "/v1/version", nil)
		h.ServeHTTP(w, r)
		if w.status != http.StatusForbidden || strings.Contains(w.body.String(), `"7"`) {
			t.Errorf("answer: got %d %s, want 403 and nothing else", w.status, &w.body)
		}
	})
}

// recorder keeps what a handler answered.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
