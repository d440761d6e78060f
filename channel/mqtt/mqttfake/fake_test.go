package mqttfake_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho5 "github.com/eclipse/paho.golang/paho"
	paho "github.com/eclipse/paho.mqtt.golang"

	"leasehold/channel/mqtt/mqttfake"
	"leasehold/internal/loop"
)

// serve runs a broker on loopback and returns its address.
func serve(t *testing.T, o mqttfake.Options) (*mqttfake.Server, string) {
	t.Helper()
	s := mqttfake.New(o)
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, ln.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within ten seconds", what)
		}
		if err := loop.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// heard is what a client of other people has heard.
type heard struct {
	mu  sync.Mutex // guards all
	all []string
}

func (h *heard) add(topic string, payload []byte, qos byte, retained bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprintf("%s %s %d %t", topic, payload, qos, retained))
}

func (h *heard) is(want ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Equal(h.all, want)
}

// client is one of other people, in either version.
type client struct {
	subscribe func(filter string, qos byte) error
	publish   func(m mqttfake.Message) error
	leave     func()
}

func connect311(t *testing.T, address, id string, h *heard) client {
	t.Helper()
	o := paho.NewClientOptions().SetClientID(id).SetAutoReconnect(false).SetCleanSession(false).SetProtocolVersion(4).AddBroker("tcp://" + address).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return dial(t, address), nil }).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { h.add(m.Topic(), m.Payload(), m.Qos(), m.Retained()) })
	c := paho.NewClient(o)
	wait := func(token paho.Token) error {
		if !token.WaitTimeout(10 * time.Second) {
			return fmt.Errorf("no answer")
		}
		return token.Error()
	}
	if err := wait(c.Connect()); err != nil {
		t.Fatal(err)
	}
	return client{
		subscribe: func(filter string, qos byte) error { return wait(c.Subscribe(filter, qos, nil)) },
		publish:   func(m mqttfake.Message) error { return wait(c.Publish(m.Topic, m.QoS, m.Retain, m.Payload)) },
		leave:     func() { c.Disconnect(250) },
	}
}

func connect5(t *testing.T, address, id string, h *heard) client {
	t.Helper()
	c := paho5.NewClient(paho5.ClientConfig{
		Conn: dial(t, address),
		OnPublishReceived: []func(paho5.PublishReceived) (bool, error){func(r paho5.PublishReceived) (bool, error) {
			h.add(r.Packet.Topic, r.Packet.Payload, r.Packet.QoS, r.Packet.Retain)
			return true, nil
		}},
	})
	expiry := uint32(3600)
	if _, err := c.Connect(t.Context(), &paho5.Connect{ClientID: id, KeepAlive: 30, Properties: &paho5.ConnectProperties{SessionExpiryInterval: &expiry}}); err != nil {
		t.Fatal(err)
	}
	return client{
		subscribe: func(filter string, qos byte) error {
			_, err := c.Subscribe(t.Context(), &paho5.Subscribe{Subscriptions: []paho5.SubscribeOptions{{Topic: filter, QoS: qos}}})
			return err
		},
		publish: func(m mqttfake.Message) error {
			_, err := c.Publish(t.Context(), &paho5.Publish{Topic: m.Topic, QoS: m.QoS, Retain: m.Retain, Payload: m.Payload})
			return err
		},
		leave: func() { _ = c.Disconnect(&paho5.Disconnect{}) },
	}
}

// Clients of other people find a broker.
func TestAnotherClientIsServed(t *testing.T) {
	for version, connect := range map[string]func(*testing.T, string, string, *heard) client{"3.1.1": connect311, "5": connect5} {
		t.Run(version, func(t *testing.T) {
			s, address := serve(t, mqttfake.Options{})
			s.Publish(mqttfake.Message{Topic: "a/old", Payload: []byte("kept"), QoS: 1, Retain: true})
			h := &heard{}
			c := connect(t, address, "a", h)
			if err := c.subscribe("a/#", 2); err != nil {
				t.Fatal(err)
			}
			for qos := range byte(3) {
				if err := c.publish(mqttfake.Message{Topic: "a/x", Payload: []byte("own"), QoS: qos}); err != nil {
					t.Errorf("publish with QoS %d: %v", qos, err)
				}
			}
			s.Publish(mqttfake.Message{Topic: "b/x", Payload: []byte("elsewhere"), QoS: 1}, mqttfake.Message{Topic: "a/x", Payload: []byte("here"), QoS: 1})
			eventually(t, "everything heard", func() bool {
				return h.is("a/old kept 1 true", "a/x own 0 false", "a/x own 1 false", "a/x own 2 false", "a/x here 1 false")
			})
			eventually(t, "everything acknowledged", func() bool { return len(s.Unacked("a")) == 0 })
			c.leave()
			eventually(t, "gone", func() bool { return s.Live("a") == 0 })
			s.Publish(mqttfake.Message{Topic: "a/x", Payload: []byte("meanwhile"), QoS: 1})
			again := &heard{}
			c = connect(t, address, "a", again)
			eventually(t, "what was published meanwhile", func() bool { return again.is("a/x meanwhile 1 false") })
			c.leave()
			if v := s.Violations("a"); len(v) > 0 {
				t.Errorf("got the complaints %q about a client that does it right", v)
			}
		})
	}
}

// hello is a CONNECT, 3.1.1, of the client "aaaaaaaaaa".
const hello = "101600044d51545404000000000a" + "61616161616161616161"

func TestViolationsAreBooked(t *testing.T) {
	for name, packets := range map[string]string{
		"a second CONNECT":                       hello,
		"an acknowledgement of nothing":          "40020001",
		"a SUBSCRIBE with the wrong flags":       "8006000100016101",
		"a SUBSCRIBE to nothing":                 "82020001",
		"a SUBSCRIBE with QoS 3":                 "8206000100016103",
		"a SUBSCRIBE without a packet id":        "8206000000016101",
		"a PUBLISH with QoS 3":                   "360500016100" + "01",
		"a PUBLISH with a wildcard":              "3003000123",
		"a PUBLISH without a packet id":          "32050001610000",
		"a QoS 0 PUBLISH that is a repetition":   "3803000161",
		"a packet of a broker":                   "d000",
		"an UNSUBSCRIBE that is cut short":       "a2030001" + "00",
		"a packet of a type that does not exist": "f000",
	} {
		t.Run(name, func(t *testing.T) {
			s, address := serve(t, mqttfake.Options{})
			c := dial(t, address)
			for _, text := range []string{hello, packets} {
				b, err := hex.DecodeString(text)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "a complaint", func() bool { return len(s.Violations("aaaaaaaaaa")) == 1 })
		})
	}
}

func TestASilentClientIsClosed(t *testing.T) {
	s, address := serve(t, mqttfake.Options{})
	c := dial(t, address)
	b, _ := hex.DecodeString("100d00044d515454040000010001" + "61") // a keep-alive of one second
	start := time.Now()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := c.Read(make([]byte, 10)); err != nil {
			break
		}
	}
	if took := time.Since(start); took < 1400*time.Millisecond {
		t.Errorf("got the end after %s, want it after one and a half keep-alives", took)
	}
	if v := s.Violations("a"); len(v) > 0 {
		t.Errorf("got the complaints %q, want none: the line may be dead", v)
	}
}

func TestHooksTell(t *testing.T) {
	var mu sync.Mutex
	var steps []string
	tell := func(client, what string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, client+" "+what)
	}
	s, address := serve(t, mqttfake.Options{
		Step: tell, Acked: func(client string, m mqttfake.Message) { tell(client, "acked "+string(m.Payload)) },
	})
	c := connect5(t, address, "a", &heard{})
	if err := c.subscribe("#", 1); err != nil {
		t.Fatal(err)
	}
	s.Publish(mqttfake.Message{Topic: "x", Payload: []byte("y"), QoS: 1})
	told := func(what string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(steps, what)
		}
	}
	eventually(t, "the acknowledgement", told("a acked y"))
	c.leave()
	eventually(t, "the end", told("a "+mqttfake.StepEnd))
	for _, step := range mqttfake.Steps() {
		who := "a "
		if step == mqttfake.StepDial {
			who = " "
		}
		if !told(who + step)() {
			t.Errorf("got no %q, want every step told: %q", step, steps)
		}
	}
}

func TestConfigIsWhatAPersonWrites(t *testing.T) {
	got := string(mqttfake.New(mqttfake.Options{}).Config("mqtt://127.0.0.1:1883", "a", map[string]string{"env": "TOKEN"}))
	for _, want := range []string{`"url":"mqtt://127.0.0.1:1883"`, `"client_id":"a"`, `"devices/a/#"`, `"password":{"env":"TOKEN"}`, `"username":"a"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

// Whatever a client sends, the broker goes on.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{hello + "8206000100016101", "100d00044d51545405000000000000" + "01", "82"} {
		b, _ := hex.DecodeString(seed)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := mqttfake.New(mqttfake.Options{})
		ln := &one{conns: make(chan net.Conn, 1), done: make(chan struct{})}
		near, far := net.Pipe()
		ln.conns <- far
		served := make(chan error, 1)
		go func() { served <- s.Serve(ln) }()
		go func() {
			for { // whatever it answers
				if _, err := near.Read(make([]byte, 1000)); err != nil {
					return
				}
			}
		}()
		_ = near.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = near.Write(b)
		_ = near.Close()
		s.Close()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
	})
}

// one is a listener that one connection comes to.
type one struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (*one) Addr() net.Addr { return &net.TCPAddr{} }
