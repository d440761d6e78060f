package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"leasehold/internal/fault"
)

const (
	// socketPathMax is the longest path of a socket: 104 bytes with a final NUL on
	// macOS and the BSDs, 108 elsewhere.
	socketPathMax = 103
	// dialWithin bounds the connection to a socket: the kernel answers at once, or
	// the process behind it does not accept any more.
	dialWithin = time.Second
	// stopWithin is what requests in flight get when the server stops.
	stopWithin = 2 * time.Second
)

// CheckSocketPath is fault.Invalid for a path that Listen refuses everywhere.
func CheckSocketPath(path string) error {
	if len(path) > socketPathMax {
		return fault.Errorf(fault.Invalid, "the path of the local socket has %d bytes, the most is %d: %s; set admin.socket to a shorter one", len(path), socketPathMax, path)
	}
	return nil
}

// Listen opens the local socket at path for the owner and the group. What a
// crashed process left there is replaced; a socket that somebody answers on is
// fault.Busy, and anything that is no socket is left alone. The caller holds the
// store's lock, or path is its own by name.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make folder of the local socket: %w", err)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("look at the local socket: %w", err)
	case info.Mode()&fs.ModeSocket == 0 && info.Mode()&fs.ModeIrregular == 0: // Windows reports a socket as irregular
		return nil, fault.Errorf(fault.Conflict, "%s is there and is no socket; move it away or set admin.socket", path)
	default:
		if conn, err := dial(ctx, path); err == nil {
			_ = conn.Close()
			return nil, fault.Errorf(fault.Busy, "another process answers on %s; stop it or set admin.socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of a process that is gone: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the local socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("set permissions of the local socket: %w", err), l.Close())
	}
	return own(l, path)
}

// Reach reports whether somebody accepts connections on the socket at path. The
// error has ErrNoAnswer in it when nobody does, and is fault.Denied when we may not
// ask.
func Reach(ctx context.Context, path string) error {
	conn, err := dial(ctx, path)
	switch {
	case err == nil:
		_ = conn.Close()
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fault.Errorf(fault.Denied, "%s is another user's; use the user that leasehold runs as, or root, for example with sudo", path)
	default:
		return fmt.Errorf("%w on %s: %w", ErrNoAnswer, path, err)
	}
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialWithin}
	return d.DialContext(ctx, "unix", path)
}

// Serve answers on l until ctx ends, then gives requests in flight two seconds
// and returns; streams end at once. It closes l. Only processes of our own user
// and of root are answered, where the system tells who calls.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	ended := serve(ctx, l, guard(h), func(ctx context.Context, c net.Conn) context.Context {
		refused := peerOf(c)
		return context.WithValue(context.WithValue(ctx, localKey{}, refused == nil && peersKnown), peerKey{}, refused)
	}, log)
	if ended != nil {
		return fmt.Errorf("serve the local socket: %w", ended)
	}
	return nil
}

// serve answers on l until ctx ends; see Serve. about adds to the context of a
// connection's requests; nil = nothing.
func serve(ctx context.Context, l net.Listener, h http.Handler, about func(context.Context, net.Conn) context.Context, log *slog.Logger) error {
	base := context.WithValue(context.WithoutCancel(ctx), stopKey{}, ctx.Done())
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: about,
		ErrorLog:    stdlog.New(complaints{log}, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	within, done := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer done()
	if s.Shutdown(within) != nil {
		_ = s.Close() // the rest is cut off; l is closed already
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// complaints logs what the server says of itself. That somebody else's handshake failed,
// whoever scans a port may have it say all day.
type complaints struct{ log *slog.Logger }

func (c complaints) Write(words []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(words, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "http server", "error", string(bytes.TrimSpace(words)))
	return len(words), nil
}

type (
	peerKey  struct{} // why the caller is refused, an error; none: it is not
	localKey struct{} // the caller is known to be our own user or root on this machine, a bool
	stopKey  struct{} // closed when the server stops: <-chan struct{}
)

// isLocal reports whether a request came over the local socket from our own user or
// root, or from this process.
func isLocal(r *http.Request) bool {
	local, _ := r.Context().Value(localKey{}).(bool)
	return local
}

// streaming returns the context of an answer that has no end of its own: it ends
// with the request, or as soon as the server stops.
func streaming(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop, ok := ctx.Value(stopKey{}).(<-chan struct{})
	if !ok {
		return ctx, cancel
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// guard refuses callers of other users.
func guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err, _ := r.Context().Value(peerKey{}).(error); err != nil {
			writeProblem(w, problemOf(fault.Wrap(fault.Denied, err)), strings.Clone) // it names two user ids
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Socket is the way in over a local socket.
func Socket(path string) http.RoundTripper {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
		// One command, one connection; a tail and a question may overlap.
		MaxIdleConns: 2, IdleConnTimeout: 10 * time.Second, DisableCompression: true,
	}
}
