package engine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/channel"
)

// setClock is a boot clock that a test sets.
type setClock struct{ at atomic.Int64 }

func (c *setClock) Boot() Instant   { return Instant(c.at.Load()) }
func (c *setClock) Wall() time.Time { return time.Now() }

// bareTerm is a term that dials through dial and trusts itself until instant 100.
func bareTerm(dial func(context.Context, string, string) (net.Conn, error)) (*term, *setClock) {
	clock := &setClock{}
	s := &Supervisor{mail: newMailbox(), log: slog.New(slog.DiscardHandler)}
	s.o = Options{Clock: clock, Connect: Connect{Dial: dial}, Rand: rand.New(rand.NewPCG(1, 2))}
	s.trust.set(100)
	return newTerm(s, actBegin{row: Installation{ID: "acme"}}), clock
}

// loopback listens, and hands what it accepts to peer.
func loopback(t *testing.T, peer func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				peer(c)
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
	}
}

func drain(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func TestKillSwitch(t *testing.T) {
	t.Run("a killed read returns ErrKilled, never net.ErrClosed", func(t *testing.T) {
		term, _ := bareTerm(loopback(t, drain))
		c, err := term.DialContext(t.Context(), "tcp", "x:1")
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
		term.kill()
		for what, err := range map[string]error{"read under way": <-read, "write after": write(c), "read after": readOne(c)} {
			if !errors.Is(err, channel.ErrKilled) || errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: got %v, want ErrKilled alone", what, err)
			}
		}
	})
	t.Run("of 2,000 dials that race the kill none survives", func(t *testing.T) {
		var open atomic.Int64
		term, _ := bareTerm(func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			open.Add(1)
			go func() { _, _ = b.Read(make([]byte, 1)); _ = b.Close(); open.Add(-1) }()
			return a, nil
		})
		var wg sync.WaitGroup
		for i := range 2000 {
			wg.Go(func() {
				if i == 1000 {
					term.kill()
				}
				_, _ = term.DialContext(t.Context(), "tcp", "x:1")
			})
		}
		wg.Wait()
		for deadline := time.Now().Add(time.Minute); open.Load() > 0; {
			if time.Now().After(deadline) {
				t.Fatalf("got %d connections that outlive their term, want 0", open.Load())
			}
			time.Sleep(time.Millisecond)
		}
		if _, err := term.DialContext(t.Context(), "tcp", "x:1"); !errors.Is(err, channel.ErrKilled) {
			t.Errorf("got %v from a dial after the kill, want ErrKilled", err)
		}
	})
	t.Run("a dial under somebody else's context ends with the term", func(t *testing.T) {
		term, _ := bareTerm(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		dialled := make(chan error, 1)
		go func() { _, err := term.DialContext(t.Context(), "tcp", "x:1"); dialled <- err }()
		term.kill()
		select {
		case err := <-dialled:
			if !errors.Is(err, channel.ErrKilled) {
				t.Errorf("got %v, want ErrKilled", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the dial outlives its term")
		}
	})
	t.Run("what was written and not yet sent is thrown away", func(t *testing.T) {
		resume, got := make(chan struct{}), make(chan int64, 1)
		term, _ := bareTerm(loopback(t, func(c net.Conn) {
			<-resume
			n, _ := io.Copy(io.Discard, c)
			got <- n
		}))
		c, err := term.DialContext(t.Context(), "tcp", "x:1")
		if err != nil {
			t.Fatal(err)
		}
		written, chunk := int64(0), make([]byte, 64<<10)
		for full := 0; full < 3; full++ { // once it may be our process that stood still
			if err := c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, err := c.Write(chunk)
			if written += int64(n); n > 0 {
				full = -1
			}
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
		}
		term.kill()
		close(resume)
		if n := <-got; n >= written {
			t.Errorf("got all %d bytes through after the kill, want the unsent ones thrown away", n)
		}
	})
	t.Run("after a pause beyond the fence nothing is said or heard, before anything else has run", func(t *testing.T) {
		var heard atomic.Int64
		speak := make(chan struct{})
		term, clock := bareTerm(loopback(t, func(c net.Conn) {
			<-speak
			_, _ = c.Write([]byte("late"))
			n, _ := io.Copy(io.Discard, c)
			heard.Add(n)
		}))
		c, err := term.DialContext(t.Context(), "tcp", "x:1")
		if err != nil {
			t.Fatal(err)
		}
		clock.at.Store(99)
		if err := write(c); err != nil {
			t.Fatalf("got %v before the fence, want nil", err)
		}
		clock.at.Store(100) // the process stood still
		for range 100 {
			if err := write(c); !errors.Is(err, channel.ErrKilled) {
				t.Fatalf("got %v, want ErrKilled", err)
			}
		}
		close(speak)
		if err := readOne(c); !errors.Is(err, channel.ErrKilled) {
			t.Errorf("got %v from a read, want ErrKilled", err)
		}
		if err := term.Accept(t.Context(), channel.Batch{Events: []channel.Event{{ID: "1"}}}); !errors.Is(err, channel.ErrFenced) {
			t.Errorf("got %v from an accept, want ErrFenced", err)
		}
		term.kill()
	})
	t.Run("what must stop with the sockets stops once, and at once when it is late", func(t *testing.T) {
		term, _ := bareTerm(nil)
		var n atomic.Int64
		term.OnKill(func() { n.Add(1) })
		term.kill()
		term.kill()
		term.OnKill(func() { n.Add(10) })
		if got := n.Load(); got != 11 {
			t.Errorf("got %d, want 11", got)
		}
	})
}

func write(c net.Conn) error {
	_, err := c.Write([]byte("x"))
	return err
}

func readOne(c net.Conn) error {
	_, err := c.Read(make([]byte, 1))
	return err
}
