package channeltest

import (
	"encoding/json"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// Harness is what a channel type brings to the suite.
type Harness struct {
	Spec channel.Spec

	// Start opens the type's fake platform on ln. It asks every account for token,
	// and tells step of each step of the protocol as it happens, on the goroutine
	// that takes it. nil: the type needs no network.
	Start func(ln net.Listener, token string, step func(name string)) Platform
	// Steps are the names of the steps that every connection with an event passes.
	// The suite breaks the connection at each, and fails when it never saw one.
	Steps []string
	// Resumes: the platform has no acknowledgements; it sends what follows the position
	// that it is asked for. Then nobody asks for Unacked.
	Resumes bool
	// Anonymous: a config does not tell who it is on the platform, so that one account
	// can be there twice.
	Anonymous bool
	// Refusal is a part of the words in which the platform refuses a credential.
	Refusal string

	// Every is how often an event comes by itself, for a type without a network;
	// Config is its configuration.
	Every  time.Duration
	Config json.RawMessage
}

// Platform is a fake platform in the suite's hands. It is safe for concurrent use.
type Platform interface {
	// Config is the type's configuration for an account of the platform at address,
	// a host:port. The credential is a secret reference, {"env": "TOKEN"}. With
	// quick, bounds on silence are scaled to at most three seconds.
	Config(address, account string, quick bool) json.RawMessage
	// Push makes n events happen and returns their ids.
	Push(account string, n int) []string
	// PushOdd makes one odd event happen and returns its id.
	PushOdd(account string, what Oddity) string
	// Garble sends what is no message of the protocol, if there is such a thing.
	Garble(account string)
	// Unacked lists the events that nobody has acknowledged.
	Unacked(account string) []string
	// Connections counts the connections that an account ever had, Live those that it
	// has now. A connection that was refused is none.
	Connections(account string) int
	Live(account string) int
	// Complaints lists what was done that the protocol forbids.
	Complaints(account string) []string
	// Drop makes the platform accept connections and drop them at once.
	Drop(account string, on bool)
	// Close ends every connection and waits for everything to be over.
	Close()
}

// Hearing is a Platform of a type that sends.
type Hearing interface {
	// Said lists the ids of the messages that an account's platform has, as often as it
	// has each.
	Said(account string) []string
}

// Oddity is what is odd about an event.
type Oddity int

// The oddities.
const (
	UnknownType Oddity = iota // of a type that nobody has heard of
	Oversized                 // larger than an event may be
)

// Run holds a channel type to what every type promises: under the real engine, on
// a real SQLite store, first in simulated time over a network in memory, then over
// TCP with the bounds that the platform's quick configuration scales down.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range cases {
		if (c.network == (h.Start != nil) || c.always) && (!c.named || !h.Anonymous) {
			t.Run(c.name, func(t *testing.T) { inBubble(t, h, c.run) })
		}
	}
	if h.Start == nil {
		return
	}
	for _, c := range stepCases {
		for _, step := range h.Steps {
			t.Run(c.name+" at "+step, func(t *testing.T) { inBubble(t, h, func(b *box) { c.run(b, step) }) })
		}
	}
	for _, c := range stepCases {
		t.Run("over TCP, "+c.name, func(t *testing.T) {
			// All steps at once: they wait more than they work, and t.Parallel would
			// let only as many of them wait as there are processors.
			t.Parallel()
			var steps sync.WaitGroup
			for _, step := range h.Steps {
				steps.Go(func() { overTCP(t, h, step, c.run) })
			}
			steps.Wait()
		})
	}
}

// suiteCase is one promise.
type suiteCase struct {
	name    string
	network bool // needs a platform
	always  bool // holds with and without one
	named   bool // a config tells who it is
	run     func(b *box)
}

// stepCase is one promise for every step of the protocol.
type stepCase struct {
	name string
	run  func(b *box, step string)
}

func inBubble(t *testing.T, h Harness, run func(b *box)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, h, dir)
		defer b.close()
		n := NewNet()
		b.faults, b.dial, b.bubble, b.address = n, n.DialContext, true, "platform.test:443"
		if h.Start != nil {
			ln, err := n.Listen(b.address)
			if err != nil {
				t.Fatal(err)
			}
			b.open(ln)
		}
		run(b)
		b.finish()
	})
}

func overTCP(t *testing.T, h Harness, step string, run func(b *box, step string)) {
	t.Helper()
	b := newBox(t, h, t.TempDir())
	defer b.close()
	b.where = "at " + step + ": "
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	proxy, err := NewProxy(t.Context(), ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer proxy.Close()
	b.faults, b.address = proxy, proxy.Addr()
	b.open(ln)
	run(b, step)
	b.finish()
}
