//go:build unix

package mqtt_test

import (
	"bytes"
	"log/slog"
	"net"
	"sync"
	"testing"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"leasehold/channel"
)

// guard lets everybody in but one.
type guard struct{ mochi.HookBase }

func (guard) ID() string { return "guard" }

func (guard) Provides(b byte) bool {
	return bytes.Contains([]byte{mochi.OnConnectAuthenticate, mochi.OnACLCheck}, []byte{b})
}

func (guard) OnConnectAuthenticate(_ *mochi.Client, pk packets.Packet) bool {
	return string(pk.Connect.Username) != "nobody"
}

func (guard) OnACLCheck(_ *mochi.Client, topic string, _ bool) bool { return topic != "secret/#" }

// mochiServer is a broker in this process.
func mochiServer(t *testing.T) (stop func(), l *live) {
	t.Helper()
	s := mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := s.AddHook(&guard{}, nil); err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddListener(listeners.NewNet("tcp", ln)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve() }()
	stop = sync.OnceFunc(func() { _ = s.Close() })
	t.Cleanup(stop)
	l = newLive(t, ln.Addr().String())
	l.words, l.batch = true, 20
	l.properties = int64(len("\x02....")) // it gives every message an expiry
	return stop, l
}

func startMochi(t *testing.T) *live {
	t.Helper()
	_, l := mochiServer(t)
	return l
}

func TestABrokerThatStopsSaysSo(t *testing.T) {
	stop, l := mochiServer(t)
	b, _ := l.connected()
	stop()
	if got := channel.Classify(b.Wait()); got.Class != channel.ClassRecycle {
		t.Errorf("got %s (%v), want to come again", got.Class, got.Err)
	}
}

func TestATopicThatMayNotBeRead(t *testing.T) {
	for version, code := range map[string]string{"5": "0x87", "3.1.1": "0x80"} {
		t.Run(version, func(t *testing.T) {
			_, l := mochiServer(t)
			l.config["version"], l.config["topics"] = version, []string{"secret/#"}
			b, _ := l.start()
			if got := channel.Classify(b.Wait()); got.Class != channel.ClassRejected || got.Code != "subscription" {
				t.Errorf("got %s %q (%v), want rejected with %s", got.Class, got.Code, got.Err, code)
			}
		})
	}
}
