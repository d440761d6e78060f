//go:build unix

package mqtt_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/internal/loop"
)

// These are brokers of other people, over real TCP.

// busy is what a loaded machine may add to a bound in real time; in the bubbles of the
// other tests the bounds hold to the letter.
const busy = 8 * time.Second

// live is a broker that runs, seen by a client through a proxy that can break.
type live struct {
	*testing.T
	address    string // the broker's own
	proxy      *channeltest.Proxy
	memory     *channeltest.Memory
	config     map[string]any
	read       *atomic.Int64 // bytes that we have read
	words      bool          // the broker says why it closes
	batch      int           // messages that may be on their way at once; more fill a window that this broker never empties
	properties int64         // bytes of properties that the broker adds to each message in version 5
}

// eachBroker runs f against each real broker, in each version.
func eachBroker(t *testing.T, f func(l *live)) {
	t.Helper()
	for name, begin := range map[string]func(t *testing.T) *live{"mochi": startMochi, "mosquitto": func(t *testing.T) *live { return startMosquitto(t).live }} {
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				l := begin(t)
				l.config["version"] = version
				l.words = l.words && version == "5"
				f(l)
			})
		}
	}
}

func newLive(t *testing.T, address string) *live {
	t.Helper()
	proxy, err := channeltest.NewProxy(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return &live{T: t, address: address, proxy: proxy, memory: channeltest.NewMemory(), read: &atomic.Int64{}, batch: 5000, config: map[string]any{
		"url": "mqtt://" + proxy.Addr(), "client_id": "leasehold-test", "topics": []string{"devices/#"}, "keep_alive": "2s",
	}}
}

// eventually waits for a condition, for as long as a busy machine may need under the
// race detector.
func (l *live) eventually(what string, ok func() bool) {
	l.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			l.Fatalf("%s: not within a minute", what)
		}
		if err := loop.Sleep(l.Context(), 2*time.Millisecond); err != nil {
			l.Fatal(err)
		}
	}
}

func (l *live) start() (*channeltest.Bench, channel.Sender) {
	l.Helper()
	ch, err := build(l.config)
	if err != nil {
		l.Fatal(err)
	}
	var d net.Dialer
	b := channeltest.NewBench(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		return counted{c, l.read}, err
	}, l.memory)
	b.Start(context.WithoutCancel(l.Context()), ch)
	l.Cleanup(func() { _ = b.Stop(channel.ErrDraining) })
	return b, ch.(channel.Sender)
}

// connected runs terms until one is connected: a listener that has just begun may
// still reset who comes.
func (l *live) connected() (*channeltest.Bench, channel.Sender) {
	l.Helper()
	b, s := l.start()
	l.eventually("connected", func() bool {
		select {
		case <-b.Done():
			if err := b.Wait(); channel.Classify(err).Code != "dial" {
				l.Fatalf("got %v, want a connection", err)
			}
			b, s = l.start()
		default:
		}
		return len(b.Readies()) == 1
	})
	return b, s
}

func (l *live) stop(b *channeltest.Bench) {
	l.Helper()
	start := time.Now()
	if err := b.Stop(channel.ErrDraining); err != nil {
		l.Errorf("stop: got %v, want nil", err)
	}
	if took := time.Since(start); took > channel.Goodbye+busy {
		l.Errorf("stop: took %s, want less than the goodbye", took)
	}
}

func (l *live) kept(n int) {
	l.Helper()
	l.eventually(fmt.Sprintf("%d events kept", n), func() bool { return len(l.memory.Events()) >= n })
	if got := len(l.memory.Events()); got != n {
		l.Errorf("got %d events kept, want %d", got, n)
	}
}

// client is another program with a client of Eclipse Paho, 3.1.1.
func (l *live) client(id string) paho.Client {
	l.Helper()
	o := paho.NewClientOptions().SetClientID(id).SetAutoReconnect(false).SetProtocolVersion(4).
		AddBroker("tcp://" + l.address).SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(l.Context(), "tcp", l.address)
	})
	if user, ok := l.config["username"].(string); ok {
		o.SetUsername(user).SetPassword(token)
	}
	c := paho.NewClient(o)
	l.took(c.Connect())
	return c
}

func (l *live) took(t paho.Token) {
	l.Helper()
	if !t.WaitTimeout(time.Minute) || t.Error() != nil {
		l.Fatalf("the other client: %v", t.Error())
	}
}

// publish sends n numbered messages as another program.
func (l *live) publish(n int, qos byte, retain bool) {
	l.Helper()
	c := l.client("publisher")
	defer c.Disconnect(100)
	tokens := make([]paho.Token, n)
	for i := range n {
		tokens[i] = c.Publish("devices/"+fmt.Sprint(i%7), qos, retain, fmt.Sprintf(`{"n":%d}`, i))
		if qos == 2 {
			l.took(tokens[i]) // some brokers take twenty at once and no more
		}
	}
	for _, t := range tokens {
		l.took(t)
	}
	if retain { // a broker may acknowledge before it hands out, and a subscription in between is sent both
		l.took(c.Publish("elsewhere", 1, false, "done"))
	}
}

func TestABurstOfFiveThousand(t *testing.T) {
	eachBroker(t, func(l *live) {
		b, _ := l.connected()
		for i := range min(50, 5000/l.batch) {
			l.publish(l.batch, 1, false)
			l.kept((i + 1) * l.batch)
		}
		seen := map[string]bool{}
		for _, e := range l.memory.Events() {
			seen[string(e.Raw)] = true
		}
		if len(seen) != l.batch || l.memory.Duplicates() != 0 {
			l.Errorf("got %d different messages and %d twice, want %d and none", len(seen), l.memory.Duplicates(), l.batch)
		}
		l.stop(b)
	})
}

func TestOfflineDelivery(t *testing.T) {
	eachBroker(t, func(l *live) {
		b, _ := l.connected()
		l.stop(b)
		l.publish(20, 1, false)
		b, _ = l.connected()
		l.kept(20)
		l.stop(b)
		b, _ = l.connected() // everything was acknowledged
		l.publish(1, 1, false)
		l.kept(21)
		if got := l.memory.Duplicates(); got != 0 {
			l.Errorf("got %d messages twice, want none", got)
		}
		l.stop(b)
	})
}

func TestARedeliveryIsTheSameEvent(t *testing.T) {
	for _, qos := range []int{1, 2} {
		t.Run(fmt.Sprintf("QoS %d", qos), func(t *testing.T) {
			eachBroker(t, func(l *live) {
				l.config["qos"], l.config["keep_alive"] = qos, "30s" // nothing comes but messages
				b, _ := l.connected()
				release := l.memory.Hold()
				before := l.read.Load()
				c := l.client("publisher")
				for range 10 {
					l.took(c.Publish("devices/x", byte(qos), false, "same"))
				}
				c.Disconnect(100)
				size := int64(len("\x32\x11\x00\x09devices/x\x00\x01same"))
				if l.config["version"] == "5" {
					size += 1 + l.properties // and a byte for their length
				}
				l.eventually("all ten heard", func() bool { return l.read.Load()-before >= 10*size })
				l.proxy.BlackholeExisting() // what is acknowledged now arrives nowhere
				release()
				l.kept(10)
				l.proxy.Cut()
				_ = b.Wait()
				b, _ = l.connected()
				l.eventually("all ten repeated", func() bool { return l.memory.Duplicates() >= 10 })
				l.kept(10)
				l.stop(b)
				b, _ = l.connected()
				l.publish(1, 1, false)
				l.kept(11)
				if got := l.memory.Duplicates(); got != 10 {
					l.Errorf("got %d repetitions, want ten: they were acknowledged then", got)
				}
				l.stop(b)
			})
		})
	}
}

func TestQoS2(t *testing.T) {
	eachBroker(t, func(l *live) {
		l.config["qos"] = 2
		b, _ := l.connected()
		l.publish(200, 2, false)
		l.kept(200)
		if e := l.memory.Events()[0]; e.Device.QoS != 2 {
			l.Errorf("got QoS %d, want 2", e.Device.QoS)
		}
		l.stop(b)
		b, _ = l.connected()
		l.publish(1, 2, false)
		l.kept(201)
		if got := l.memory.Duplicates(); got != 0 {
			l.Errorf("got %d messages twice, want none: they were completed", got)
		}
		l.stop(b)
	})
}

func TestARetainedMessageComesOnce(t *testing.T) {
	eachBroker(t, func(l *live) {
		l.publish(1, 1, true)
		b, _ := l.connected()
		l.kept(1)
		if e := l.memory.Events()[0]; !e.Device.Retain {
			l.Errorf("got %+v, want it told that it was retained", e.Device)
		}
		l.stop(b)
		b, _ = l.connected()
		l.proxy.Cut()
		_ = b.Wait()
		b, _ = l.connected()
		c := l.client("publisher")
		l.took(c.Publish("devices/after", 1, false, "after"))
		c.Disconnect(100)
		l.kept(2)
		l.stop(b)
	})
}

func TestAWrongPassword(t *testing.T) {
	eachBroker(t, func(l *live) {
		l.config["username"], l.config["password"] = "nobody", map[string]string{"env": "TOKEN"}
		b, _ := l.start()
		got := channel.Classify(b.Wait())
		if got.Class != channel.ClassRejected || got.Code != "auth" {
			l.Errorf("got %s %q (%v), want rejected auth", got.Class, got.Code, got.Err)
		}
		if strings.Contains(b.Said(), token) {
			l.Errorf("the secret left the channel: %s", b.Said())
		}
	})
}

func TestSendIsHeardByOthers(t *testing.T) {
	eachBroker(t, func(l *live) {
		heard := make(chan string, 10)
		other := l.client("other")
		l.took(other.Subscribe("lamps/#", 1, func(_ paho.Client, m paho.Message) { heard <- m.Topic() + " " + string(m.Payload()) }))
		b, s := l.connected()
		for i := range 10 {
			if _, err := s.Send(l.Context(), to("lamps/1", fmt.Sprint(i))); err != nil {
				l.Fatal(err)
			}
		}
		for i := range 10 {
			if got, want := <-heard, fmt.Sprintf("lamps/1 %d", i); got != want {
				l.Errorf("got %q, want %q", got, want)
			}
		}
		other.Disconnect(100)
		l.stop(b)
	})
}

func TestAnotherClientWithOurID(t *testing.T) {
	eachBroker(t, func(l *live) {
		var classes []channel.Class
		for range 3 {
			b, _ := l.connected()
			other := l.client("leasehold-test")
			classes = append(classes, channel.Classify(b.Wait()).Class)
			other.Disconnect(100)
		}
		want := []channel.Class{channel.Transient, channel.Transient, channel.ClassSuperseded}
		if l.words {
			want = []channel.Class{channel.ClassSuperseded, channel.ClassSuperseded, channel.ClassSuperseded}
		}
		if !slices.Equal(classes, want) {
			l.Errorf("got %v, want %v", classes, want)
		}
	})
}
