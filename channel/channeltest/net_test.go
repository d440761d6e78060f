package channeltest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel/channeltest"
)

// connected returns both ends of a fresh connection.
func connected(t *testing.T, n *channeltest.Net) (near, far *channeltest.Conn) {
	t.Helper()
	ln, err := n.Listen("platform.test:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	c, err := n.DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*channeltest.Conn), a.(*channeltest.Conn)
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("write %q: got %d and %v, want all of it", s, n, err)
	}
}

func wantRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if n, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("read: got %q and %v, want %q", b[:n], err, want)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
	var op *net.OpError
	if !errors.Is(err, io.EOF) && !errors.As(err, &op) {
		t.Errorf("%s: got %T, want a net.OpError as TCP has it", what, err)
	}
}

func readError(c net.Conn) error {
	_, err := c.Read(make([]byte, 1))
	return err
}

func writeError(c net.Conn) error {
	_, err := c.Write([]byte("x"))
	return err
}

func TestNetCarriesBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := connected(t, channeltest.NewNet())
		write(t, near, "ping")
		wantRead(t, far, "ping")
		write(t, far, "po")
		write(t, far, "ng")
		wantRead(t, near, "pong")

		big := bytes.Repeat([]byte("0123456789"), 50_000) // many times the buffer
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := near.Write(big); err != nil {
				t.Error(err)
			}
			_ = near.CloseWrite()
		})
		got, err := io.ReadAll(far)
		wg.Wait()
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("got %d bytes and %v, want %d in order", len(got), err, len(big))
		}
		write(t, far, "still there")
		wantRead(t, near, "still there")
		wantError(t, "write after CloseWrite", writeError(near), syscall.EPIPE)
	})
}

func TestNetEndsConnectionsAsTCPDoes(t *testing.T) {
	for name, f := range map[string]func(t *testing.T, near, far *channeltest.Conn){
		"a close is heard as the end of the stream after what was written": func(t *testing.T, near, far *channeltest.Conn) {
			write(t, near, "last words")
			_ = near.Close()
			wantRead(t, far, "last words")
			wantError(t, "read", readError(far), io.EOF)
		},
		"a write to who has gone succeeds once and is answered by a reset": func(t *testing.T, near, far *channeltest.Conn) {
			_ = near.Close()
			write(t, far, "too late")
			wantError(t, "write", writeError(far), syscall.ECONNRESET)
			wantError(t, "read", readError(far), syscall.ECONNRESET)
		},
		"a close with linger 0 is a reset that drops what was written": func(t *testing.T, near, far *channeltest.Conn) {
			write(t, near, "never heard")
			_ = near.SetLinger(0)
			_ = near.Close()
			wantError(t, "read", readError(far), syscall.ECONNRESET)
		},
		"a close over unread bytes is a reset": func(t *testing.T, near, far *channeltest.Conn) {
			write(t, far, "unread")
			_ = near.Close()
			wantError(t, "read", readError(far), syscall.ECONNRESET)
		},
		"what is closed stays closed": func(t *testing.T, near, _ *channeltest.Conn) {
			_ = near.Close()
			wantError(t, "read", readError(near), net.ErrClosed)
			wantError(t, "write", writeError(near), net.ErrClosed)
			wantError(t, "close", near.Close(), net.ErrClosed)
			wantError(t, "set a deadline", near.SetDeadline(time.Now()), net.ErrClosed)
		},
		"a close wakes its own reader": func(t *testing.T, near, _ *channeltest.Conn) {
			go func() { _ = near.Close() }()
			wantError(t, "read", readError(near), net.ErrClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := connected(t, channeltest.NewNet())
				f(t, near, far)
			})
		})
	}
}

func TestNetFaults(t *testing.T) {
	for name, f := range map[string]func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn){
		"a mute peer is not noticed by writes until 64 kB wait": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.Pause()
			write(t, near, string(make([]byte, 64<<10)))
			_ = near.SetWriteDeadline(time.Now().Add(time.Second))
			start := time.Now()
			wantError(t, "write", writeError(near), os.ErrDeadlineExceeded)
			if got := time.Since(start); got != time.Second {
				t.Errorf("got the time-out after %s, want 1s", got)
			}
		},
		"a pause holds bytes, ends and resets until it is over": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.Pause()
			write(t, near, "held")
			_ = near.Close()
			_ = far.SetReadDeadline(time.Now().Add(time.Hour))
			wantError(t, "read", readError(far), os.ErrDeadlineExceeded)
			_ = far.SetReadDeadline(time.Time{})
			n.Resume()
			wantRead(t, far, "held")
			wantError(t, "read", readError(far), io.EOF)
		},
		"what was written to who has gone meanwhile is answered by a reset": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.Pause()
			_ = near.Close()
			write(t, far, "held")
			n.Resume()
			wantError(t, "read", readError(far), syscall.ECONNRESET)
		},
		"a pause leaves dials without an answer": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			ln, _ := n.Listen("b:1")
			defer func() { _ = ln.Close() }()
			n.Pause()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := n.DialContext(ctx, "tcp", "b:1")
			wantError(t, "dial", err, os.ErrDeadlineExceeded)
			time.AfterFunc(time.Second, n.Resume)
			c, err := n.DialContext(t.Context(), "tcp", "b:1")
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		},
		"a cut resets both ends, of a paused connection too": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			write(t, near, "lost")
			n.Pause()
			n.Cut()
			for _, c := range []net.Conn{near, far} {
				wantError(t, "read", readError(c), syscall.ECONNRESET)
				wantError(t, "write", writeError(c), syscall.ECONNRESET)
			}
		},
		"a half-close ends one direction": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.HalfClose()
			wantError(t, "read", readError(near), io.EOF)
			write(t, far, "dropped")
			write(t, near, "arrives")
			wantRead(t, far, "arrives")
		},
		"a black hole swallows what exists and lets new connections through": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.BlackholeExisting()
			write(t, near, "held")
			_ = far.SetReadDeadline(time.Now().Add(time.Hour))
			wantError(t, "read", readError(far), os.ErrDeadlineExceeded)
			near2, far2 := connected(t, n)
			write(t, near2, "new")
			wantRead(t, far2, "new")
		},
		"refused dials fail at once": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			ln, _ := n.Listen("b:1")
			defer func() { _ = ln.Close() }()
			n.Refuse(true)
			_, err := n.DialContext(t.Context(), "tcp", "b:1")
			wantError(t, "dial", err, syscall.ECONNREFUSED)
			n.Refuse(false)
			if _, err := n.DialContext(t.Context(), "tcp", "b:1"); err != nil {
				t.Error(err)
			}
			if got := n.Dials(); got != 3 {
				t.Errorf("got %d dials, want 3 with the refused one", got)
			}
		},
		"dials into a black hole wait for their context": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.Blackhole(true)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			start := time.Now()
			_, err := n.DialContext(ctx, "tcp", "b:1")
			wantError(t, "dial", err, os.ErrDeadlineExceeded)
			if got := time.Since(start); got != 10*time.Second {
				t.Errorf("got an answer after %s, want 10s", got)
			}
			write(t, near, "existing")
			wantRead(t, far, "existing")
		},
		"latency delays bytes and ends, in order": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			n.Latency(100 * time.Millisecond)
			start := time.Now()
			write(t, near, "late")
			_ = near.Close()
			wantRead(t, far, "late")
			wantError(t, "read", readError(far), io.EOF)
			if got := time.Since(start); got != 100*time.Millisecond {
				t.Errorf("got it after %s, want 100ms", got)
			}
		},
		"only open connections are counted": func(t *testing.T, n *channeltest.Net, near, far *channeltest.Conn) {
			connected(t, n)
			if got := n.Live(); got != 2 {
				t.Errorf("got %d live, want 2", got)
			}
			n.Conns()[0].Cut()
			_ = near.Close()
			if got := n.Live(); got != 1 {
				t.Errorf("got %d live, want 1", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := channeltest.NewNet()
				near, far := connected(t, n)
				f(t, n, near, far)
			})
		})
	}
}

func TestNetDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := connected(t, channeltest.NewNet())
		time.AfterFunc(time.Minute, func() { _ = near.SetReadDeadline(time.Now().Add(-time.Hour)) })
		start := time.Now()
		err := readError(near)
		wantError(t, "read", err, os.ErrDeadlineExceeded)
		if got := time.Since(start); got != time.Minute {
			t.Errorf("got woken after %s, want 1m: a past deadline wakes a reader", got)
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v, want a time-out", err)
		}
		_ = near.SetDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { _ = near.SetReadDeadline(time.Now().Add(time.Minute)) })
		start = time.Now()
		wantError(t, "read", readError(near), os.ErrDeadlineExceeded)
		if got := time.Since(start); got != 2*time.Minute {
			t.Errorf("got woken after %s, want 2m", got)
		}
	})
}

func TestNetListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := channeltest.NewNet()
		ln, err := n.Listen("a:1")
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Listen("a:1")
		wantError(t, "listen again", err, syscall.EADDRINUSE)
		_, err = n.DialContext(t.Context(), "tcp", "b:1")
		wantError(t, "dial nobody", err, syscall.ECONNREFUSED)
		c, err := n.DialContext(t.Context(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = ln.Close() }()
		synctest.Wait()
		wantError(t, "read what nobody accepted", readError(c), syscall.ECONNRESET)
		_, err = ln.Accept()
		wantError(t, "accept", err, net.ErrClosed)
		if _, err := n.Listen("a:1"); err != nil {
			t.Errorf("listen after close: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = n.DialContext(ctx, "tcp", "a:1")
		wantError(t, "dial with an ended context", err, context.Canceled)
	})
}
