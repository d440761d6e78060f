// Package freeport finds TCP ports on loopback for the servers of other people that a
// test starts, which must be told their port before they listen. What can listen on
// port 0 needs none of them.
//
// A port is its taker's until it is given back, also while his server is down: nobody
// else who asks here gets it, in this process or in another.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports that are given, below the 32768 from which systems hand out theirs: no
// connection and no listener on port 0 takes one before its server has started.
const (
	first = 20_000
	count = 12_000
)

// Of returns a port that is the test's to its end.
func Of(t testing.TB) int {
	t.Helper()
	port, release, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// Take returns a port on which nobody listens, and what gives it back.
func Take() (port int, release func(), err error) { return take(first, count) }

func take(first, count int) (port int, release func(), err error) {
	from := rand.IntN(count)
	for n := range count {
		port = first + (from+n)%count
		if release, ok := claim(port); ok {
			return port, release, nil
		}
	}
	return 0, nil, fmt.Errorf("no port of 127.0.0.1 is free between %d and %d", first, first+count-1)
}

// claim holds the UDP port of the same number, which says to all who ask that it is
// taken and leaves TCP alone.
func claim(port int) (release func(), ok bool) {
	var lc net.ListenConfig
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	held, err := lc.ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return nil, false
	}
	ln, err := lc.Listen(context.Background(), "tcp", address)
	if err == nil {
		err = ln.Close()
	}
	if err != nil {
		_ = held.Close() // nothing was sent on it
		return nil, false
	}
	return func() { _ = held.Close() }, true
}
