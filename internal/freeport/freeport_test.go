package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestTake(t *testing.T) {
	t.Run("a port is given once, and again when it is given back", func(t *testing.T) {
		port, release, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := take(port, 1); err == nil {
			t.Errorf("got %d twice, want it refused while it is taken", got)
		}
		release()
		got, release, err := take(port, 1)
		if err != nil || got != port {
			t.Fatalf("got %d, %v, want %d again", got, err, port)
		}
		release()
	})

	t.Run("one that somebody listens on is not given", func(t *testing.T) {
		port, release, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		ln := listen(t, port) // its taker may
		release()
		if got, _, err := take(port, 1); err == nil {
			t.Errorf("got %d, want an error: it is in use", got)
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a test has its own to its end", func(t *testing.T) {
		var port int
		t.Run("which is here", func(t *testing.T) {
			port = Of(t)
			if port < first || port >= first+count || port == Of(t) {
				t.Errorf("got %d, want one of ours, and another the next time", port)
			}
		})
		_, release, err := take(port, 1)
		if err != nil {
			t.Fatalf("got %v, want it given back", err)
		}
		release()
	})
}

func listen(t *testing.T, port int) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	return ln
}
