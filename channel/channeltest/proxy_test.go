package channeltest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"leasehold/channel/channeltest"
)

// proxied returns a proxy and both ends of a connection through it.
func proxied(t *testing.T) (*channeltest.Proxy, net.Listener, net.Conn, net.Conn) {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	p, err := channeltest.NewProxy(t.Context(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	near, far := through(t, p, ln)
	return p, ln, near, far
}

func through(t *testing.T, p *channeltest.Proxy, ln net.Listener) (net.Conn, net.Conn) {
	t.Helper()
	var d net.Dialer
	near, err := d.DialContext(t.Context(), "tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// mute reports that nothing comes for a while. It cannot be too short to pass,
// only to fail.
func mute(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if err := readError(c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want silence", err)
	}
	_ = c.SetReadDeadline(time.Time{})
}

func TestProxyFaults(t *testing.T) {
	for name, f := range map[string]func(t *testing.T, p *channeltest.Proxy, ln net.Listener, near, far net.Conn){
		"bytes and ends pass": func(t *testing.T, _ *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			write(t, near, "ping")
			wantRead(t, far, "ping")
			write(t, far, "pong")
			wantRead(t, near, "pong")
			_ = near.Close()
			wantError(t, "read", readError(far), io.EOF)
		},
		"a reset passes": func(t *testing.T, _ *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			_ = near.(*net.TCPConn).SetLinger(0)
			_ = near.Close()
			wantError(t, "read", readError(far), syscall.ECONNRESET)
		},
		"a pause stops bytes and keeps the sockets": func(t *testing.T, p *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			p.Pause()
			write(t, near, "held")
			mute(t, far)
			p.Resume()
			wantRead(t, far, "held")
		},
		"a pause applies to connections to come": func(t *testing.T, p *channeltest.Proxy, ln net.Listener, _, _ net.Conn) {
			p.Pause()
			near, far := through(t, p, ln)
			write(t, near, "held")
			mute(t, far)
			p.Resume()
			wantRead(t, far, "held")
		},
		"answers are stopped while requests pass": func(t *testing.T, p *channeltest.Proxy, ln net.Listener, near, far net.Conn) {
			p.PauseAnswers()
			near2, far2 := through(t, p, ln)
			for _, c := range []struct{ near, far net.Conn }{{near, far}, {near2, far2}} {
				write(t, c.near, "asked")
				wantRead(t, c.far, "asked")
				write(t, c.far, "held")
				mute(t, c.near)
			}
			p.Resume()
			wantRead(t, near, "held")
			wantRead(t, near2, "held")
		},
		"requests are stopped while answers pass": func(t *testing.T, p *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			p.PauseRequests()
			write(t, far, "told")
			wantRead(t, near, "told")
			write(t, near, "held")
			mute(t, far)
			p.Resume()
			wantRead(t, far, "held")
		},
		"a cut resets both ends, of a paused connection too": func(t *testing.T, p *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			p.Pause()
			p.Cut()
			wantError(t, "read near", readError(near), syscall.ECONNRESET)
			wantError(t, "read far", readError(far), syscall.ECONNRESET)
		},
		"a half-close ends one direction": func(t *testing.T, p *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			p.HalfClose()
			wantError(t, "read", readError(near), io.EOF)
			write(t, far, "dropped")
			write(t, near, "arrives")
			wantRead(t, far, "arrives")
		},
		"a black hole swallows what exists and lets new connections through": func(t *testing.T, p *channeltest.Proxy, ln net.Listener, near, far net.Conn) {
			p.BlackholeExisting()
			write(t, near, "held")
			mute(t, far)
			near2, far2 := through(t, p, ln)
			write(t, near2, "new")
			wantRead(t, far2, "new")
		},
		"blackholed dials are mute": func(t *testing.T, p *channeltest.Proxy, ln net.Listener, _, _ net.Conn) {
			p.Blackhole(true)
			near, far := through(t, p, ln)
			write(t, near, "held")
			mute(t, far)
		},
		"refused dials fail at once, and come back on the same port": func(t *testing.T, p *channeltest.Proxy, ln net.Listener, _, _ net.Conn) {
			p.Refuse(true)
			var d net.Dialer
			_, err := d.DialContext(t.Context(), "tcp", p.Addr())
			wantError(t, "dial", err, syscall.ECONNREFUSED)
			p.Refuse(false)
			near, far := through(t, p, ln)
			write(t, near, "again")
			wantRead(t, far, "again")
			if got := p.Dials(); got != 2 {
				t.Errorf("got %d dials, want the 2 that were taken", got)
			}
		},
		"latency delays bytes": func(t *testing.T, p *channeltest.Proxy, _ net.Listener, near, far net.Conn) {
			p.Latency(50 * time.Millisecond)
			start := time.Now()
			write(t, near, "late")
			wantRead(t, far, "late")
			if got := time.Since(start); got < 50*time.Millisecond {
				t.Errorf("got it after %s, want at least 50ms", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, ln, near, far := proxied(t)
			f(t, p, ln, near, far)
		})
	}
}

func TestProxyCloseLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := channeltest.NewProxy(ctx, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		near, _ := through(t, p, ln)
		if i%2 == 0 {
			_ = near.Close()
		}
	}
	p.Pause()
	p.Close()
	_ = ln.Close()
	if p.Live() != 0 {
		t.Errorf("got %d connections after Close, want none", p.Live())
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("got %d goroutines, want %d as before", runtime.NumGoroutine(), before)
		}
	}
}
