package mqtt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/mqtt/mqttfake"
)

// ending is how the end of a term is classified, with some of its words.
type ending struct {
	class channel.Class
	code  string
	words string
}

func TestRefusals(t *testing.T) {
	for version, codes := range map[string]map[byte]ending{
		"5": {
			0x80: {channel.Transient, "code_0x80", "unspecified error"},
			0x81: {channel.ClassRejected, "code_0x81", "malformed packet"},
			0x82: {channel.ClassRejected, "code_0x82", "protocol error"},
			0x83: {channel.Transient, "code_0x83", "implementation specific"},
			0x84: {channel.ClassRejected, "version", "set version to what it speaks"},
			0x85: {channel.ClassRejected, "client_id", "choose another client_id"},
			0x86: {channel.ClassRejected, "auth", "check username, password"},
			0x87: {channel.ClassRejected, "auth", "not authorized"},
			0x88: {channel.Transient, "code_0x88", "server unavailable"},
			0x89: {channel.Transient, "code_0x89", "server busy"},
			0x8A: {channel.ClassRejected, "code_0x8a", "banned"},
			0x8C: {channel.ClassRejected, "auth", "bad authentication method"},
			0x90: {channel.ClassRejected, "code_0x90", "topic name invalid"},
			0x95: {channel.ClassRejected, "code_0x95", "packet too large"},
			0x97: {channel.Transient, "code_0x97", "quota exceeded"},
			0x9C: {channel.Transient, "code_0x9c", "use another server: because 0x9c, use other.test:1883"},
			0x9D: {channel.ClassRejected, "moved", "set url to the broker's new address"},
			0x9F: {channel.Transient, "code_0x9f", "connection rate exceeded"},
			0xFF: {channel.Transient, "code_0xff", "no reason that the protocol knows"},
		},
		"3.1.1": {
			1:  {channel.ClassRejected, "version", "unacceptable protocol version"},
			2:  {channel.ClassRejected, "client_id", "identifier rejected"},
			3:  {channel.Transient, "code_0x03", "server unavailable"},
			4:  {channel.ClassRejected, "auth", "bad user name or password"},
			5:  {channel.ClassRejected, "auth", "not authorized"},
			77: {channel.Transient, "code_0x4d", "no reason that the protocol knows"},
		},
	} {
		for code, want := range codes {
			t.Run(fmt.Sprintf("%s %#02x", version, code), func(t *testing.T) {
				bubbleOf(t, version, mqttfake.Options{}, func(w *world) {
					w.fake.Behave(me, mqttfake.Behaviour{Code: code, Words: fmt.Sprintf("because\n%#02x", code), Reference: "other.test:1883"})
					b, _ := w.start()
					got := w.WantExit(b, want.class, want.code)
					said := strings.ToLower(got.Err.Error())
					if !strings.Contains(said, want.words) || version == "5" && !strings.Contains(said, fmt.Sprintf("because %#02x", code)) {
						t.Errorf("got %q, want %q and the broker's words", got.Err, want.words)
					}
					if len(b.Readies()) != 0 {
						t.Error("got ready from a broker that refuses us")
					}
				})
			})
		}
	}
}

func TestAWrongPasswordIsRejectedAndNotRepeated(t *testing.T) {
	bubble(t, mqttfake.Options{Password: func(string) string { return "another" }}, func(w *world) {
		b, _ := w.start()
		got := w.WantExit(b, channel.ClassRejected, "auth")
		if !strings.Contains(got.Err.Error(), "not authorized") && !strings.Contains(got.Err.Error(), "not Authorized") {
			t.Errorf("got %q, want the broker's words", got.Err)
		}
		if w.is5() && !strings.Contains(got.Err.Error(), "who is [redacted]?") {
			t.Errorf("got %q, want the broker's words without the password", got.Err)
		}
	})
}

func TestTheRightPasswordIsTaken(t *testing.T) {
	bubble(t, mqttfake.Options{Password: func(string) string { return token }}, func(w *world) {
		b, _ := w.connected()
		if got := w.fake.Connections(me)[0].Username; got != me {
			t.Errorf("got the username %q, want %q", got, me)
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestDismissals(t *testing.T) {
	for code, want := range map[byte]ending{
		0x00: {channel.ClassRecycle, "recycle", "normal disconnection"},
		0x80: {channel.Transient, "code_0x80", "unspecified error"},
		0x81: {channel.ClassRejected, "code_0x81", "malformed packet"},
		0x82: {channel.ClassRejected, "code_0x82", "protocol error"},
		0x83: {channel.Transient, "code_0x83", "implementation specific"},
		0x87: {channel.ClassRejected, "auth", "what the account may do"},
		0x89: {channel.Transient, "code_0x89", "server busy"},
		0x8B: {channel.ClassRecycle, "recycle", "server shutting down"},
		0x8D: {channel.Transient, "code_0x8d", "keep alive timeout"},
		0x8E: {channel.ClassSuperseded, "superseded", `give every client that connects as "a" a client_id of its own`},
		0x93: {channel.Transient, "code_0x93", "receive maximum exceeded"},
		0x95: {channel.ClassRejected, "code_0x95", "packet too large"},
		0x96: {channel.Transient, "code_0x96", "message rate too high"},
		0x97: {channel.Transient, "code_0x97", "quota exceeded"},
		0x98: {channel.Transient, "code_0x98", "administrative action"},
		0x9C: {channel.Transient, "code_0x9c", "use another server"},
		0x9D: {channel.ClassRejected, "moved", "server moved"},
		0x9F: {channel.Transient, "code_0x9f", "connection rate exceeded"},
		0xA0: {channel.ClassRecycle, "recycle", "maximum connect time"},
	} {
		t.Run(fmt.Sprintf("%#02x", code), func(t *testing.T) {
			bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
				b, _ := w.connected()
				w.fake.Disconnect(me, code, "because\nof this")
				got := w.WantExit(b, want.class, want.code)
				if said := strings.ToLower(got.Err.Error()); !strings.Contains(said, want.words) || !strings.Contains(said, "because of this") {
					t.Errorf("got %q, want %q and the broker's words", got.Err, want.words)
				}
			})
		})
	}
}

func TestARefusedTopic(t *testing.T) {
	refuse := func(code byte) mqttfake.Behaviour {
		return mqttfake.Behaviour{Suback: map[string]byte{"x/1": code}}
	}
	t.Run("among others is told, and the others are heard", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Config["topics"] = []string{"x/1", "x/2"}
			w.fake.Behave(me, refuse(map[bool]byte{true: 0x87, false: 0x80}[w.is5()]))
			for range 2 {
				b, _ := w.connected()
				if got := b.Notices(); len(got) != 1 || got[0].Code != "subscription_refused" || !strings.Contains(got[0].Words, `"x/1"`) {
					t.Errorf("got the notices %v, want one of x/1", got)
				}
				w.stop(b, channel.ErrDraining)
			}
			w.fake.Behave(me, mqttfake.Behaviour{}) // a person has mended it
			b, _ := w.connected()
			w.fake.Publish(mqttfake.Message{Topic: "x/1", Payload: []byte("now"), QoS: 1})
			synctest.Wait()
			w.wantKept("now")
			w.stop(b, channel.ErrDraining)
		})
	})
	for version, codes := range map[string]map[byte]channel.Class{
		"5": {
			0x80: channel.Transient, 0x83: channel.Transient, 0x87: channel.ClassRejected, 0x8F: channel.ClassRejected,
			0x97: channel.Transient, 0x9E: channel.ClassRejected, 0xA2: channel.ClassRejected,
		},
		"3.1.1": {0x80: channel.ClassRejected},
	} {
		for code, class := range codes {
			t.Run(fmt.Sprintf("alone ends it: %s %#02x", version, code), func(t *testing.T) {
				bubbleOf(t, version, mqttfake.Options{}, func(w *world) {
					w.Config["topics"] = []string{"x/1"}
					w.fake.Behave(me, refuse(code))
					b, _ := w.start()
					w.WantExit(b, class, "subscription")
					if len(b.Readies()) != 0 {
						t.Error("got ready without a subscription")
					}
				})
			})
		}
	}
	t.Run("a QoS below what was asked for is told", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Config["topics"] = []string{"x/1"}
			w.fake.Behave(me, refuse(0))
			b, _ := w.connected()
			if got := b.Notices(); len(got) != 1 || got[0].Code != "qos" {
				t.Errorf("got the notices %v, want one of the QoS", got)
			}
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestTakeover(t *testing.T) {
	// rival connects with our id whenever we are connected, as a second copy does.
	rounds := func(w *world) (ends []channel.Exit) {
		stage := *w.Stage
		stage.Memory = copyOf(w.Memory)
		rival := &world{&stage, w.fake}
		for range 4 {
			b, _ := w.connected()
			time.Sleep(3 * time.Second)
			r, _ := rival.connected()
			ends = append(ends, channel.Classify(b.Wait()))
			_ = r.Stop(channel.ErrDraining)
		}
		return ends
	}
	t.Run("a broker that says so is believed at once", func(t *testing.T) {
		bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
			for i, end := range rounds(w) {
				if end.Class != channel.ClassSuperseded {
					t.Errorf("round %d: got %s (%v), want superseded", i, end.Class, end.Err)
				}
			}
		})
	})
	t.Run("one that says nothing is understood at the third time", func(t *testing.T) {
		bubble(t, mqttfake.Options{Wordless: true}, func(w *world) {
			for i, end := range rounds(w) {
				want := channel.Transient
				if i >= 2 {
					want = channel.ClassSuperseded
				}
				if end.Class != want {
					t.Errorf("round %d: got %s (%v), want %s", i, end.Class, end.Err, want)
				}
			}
			b, _ := w.connected()
			time.Sleep(31 * time.Second) // long enough for a connection of one's own
			w.fake.Disconnect(me, 0x80, "")
			if got := channel.Classify(b.Wait()).Class; got != channel.Transient {
				t.Errorf("got %s after half a minute, want transient", got)
			}
			b, _ = w.connected()
			w.fake.Cut(me)
			if got := channel.Classify(b.Wait()).Class; got != channel.Transient {
				t.Errorf("got %s from the first early end after that, want transient", got)
			}
		})
	})
	t.Run("a stop of our own does not count", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			for range 5 {
				b, _ := w.connected()
				w.stop(b, channel.ErrDraining)
			}
			b, _ := w.connected()
			w.fake.Cut(me)
			w.WantExit(b, channel.Transient, "closed")
		})
	})
	t.Run("a connection that lasted ends the count, however it ended", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			for range 2 {
				b, _ := w.connected()
				w.fake.Cut(me)
				w.WantExit(b, channel.Transient, "closed")
			}
			b, _ := w.connected()
			time.Sleep(31 * time.Second)
			w.stop(b, channel.ErrDraining)
			b, _ = w.connected()
			w.fake.Cut(me)
			w.WantExit(b, channel.Transient, "closed")
		})
	})
	t.Run("a broker that is down does not count", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{DropFirst: true})
			for range 5 {
				b, _ := w.start()
				w.WantExit(b, channel.Transient, "closed")
			}
		})
	})
}

func TestABrokenConnectionIsTransient(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"reset": func(w *world) { w.Net.Cut() }, "end of the stream": func(w *world) { w.Net.HalfClose() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, mqttfake.Options{}, func(w *world) {
				b, _ := w.connected()
				end(w)
				w.WantExit(b, channel.Transient, "closed")
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Net.Refuse(true)
			b, _ := w.start()
			if got := w.WantExit(b, channel.Transient, "dial"); !strings.Contains(got.Err.Error(), "connect to "+broker) {
				t.Errorf("got %q, want where", got.Err)
			}
		})
	})
}

func TestEveryStepHasADeadline(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		code    string
		within  time.Duration
	}{
		"a dial without an answer":       {func(w *world) { w.Net.Blackhole(true) }, "dial", 10 * time.Second},
		"a CONNECT without an answer":    {func(w *world) { w.fake.Behave(me, mqttfake.Behaviour{Stall: true}) }, "no_connack", 15 * time.Second},
		"a SUBSCRIBE without an answer":  {func(w *world) { w.fake.Behave(me, mqttfake.Behaviour{NoSuback: true}) }, "no_suback", 15 * time.Second},
		"a broker that reads nothing":    {func(w *world) { w.fake.Behave(me, mqttfake.Behaviour{Deaf: true}) }, "no_suback", 15 * time.Second},
		"a listener of another protocol": {func(w *world) { w.Config["url"] = "mqtt://mute.test:1" }, "no_connack", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, mqttfake.Options{}, func(w *world) {
				mute, err := w.Net.Listen("mute.test:1")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = mute.Close() }()
				c.prepare(w)
				start := time.Now()
				b, _ := w.start()
				w.WantExit(b, channel.Transient, c.code)
				if took := time.Since(start).Truncate(time.Millisecond); took != c.within {
					t.Errorf("got an end after %s, want %s", took, c.within)
				}
			})
		})
	}
}

func TestWhatIsNoPacketEndsTheConnection(t *testing.T) {
	for name, raw := range map[string][]byte{
		"a type that does not exist":         {0x00, 0x00},
		"an AUTH that we did not ask for":    {0xF0, 0x00},
		"a packet of a client":               {0xC0, 0x00},
		"flags that are reserved":            {0xD1, 0x00},
		"a length without an end":            {0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x01},
		"a PUBLISH with QoS 3":               {0x36, 0x06, 0, 1, 'x', 0, 1, 0},
		"a PUBLISH without a packet id":      {0x32, 0x06, 0, 1, 'x', 0, 0, 0},
		"a PUBLISH without a topic":          {0x30, 0x03, 0, 0, 0},
		"a PUBLISH whose topic is no text":   {0x30, 0x05, 0, 1, 0xFF, 0, 0},
		"a PUBLISH whose topic is cut short": {0x30, 0x03, 0, 9, 'x'},
		"an empty PUBLISH":                   {0x30, 0x00},
		"a SUBACK that nobody asked for":     {0x90, 0x04, 0, 77, 0, 0},
		"a SUBACK with a code too many":      {0x90, 0x06, 0, 1, 0, 0, 0, 0},
		"an UNSUBACK that nobody asked for":  {0xB0, 0x02, 0, 77},
		"a PUBREC for nothing":               {0x50, 0x02, 0, 1},
		"a second CONNACK":                   {0x20, 0x03, 0, 0, 0},
		"a short PUBACK":                     {0x40, 0x01, 0},
		"a control packet of a megabyte":     {0x40, 0x80, 0x80, 0x40},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, mqttfake.Options{}, func(w *world) {
				b, _ := w.connected()
				w.fake.Raw(me, raw)
				w.WantExit(b, channel.Transient, "protocol")
			})
		})
	}
	t.Run("before the CONNACK", func(t *testing.T) {
		for name, raw := range map[string][]byte{
			"a PUBLISH":                          {0x30, 0x03, 0, 1, 'x'},
			"a CONNACK with an authentication":   {0x20, 8, 0, 0, 5, 0x15, 0, 2, 'h', 'i'},
			"a CONNACK that is too short":        {0x20, 1, 0},
			"a greeting of another protocol":     []byte("SSH-2.0-OpenSSH_9.2\r\n"),
			"an error of a web server":           []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
			"a CONNACK of version 3.1.1, code 1": {0x20, 2, 0, 1},
		} {
			bubble(t, mqttfake.Options{}, func(w *world) {
				ln, err := w.Net.Listen("odd.test:1")
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					_, _ = c.Read(make([]byte, 1000))
					_, _ = c.Write(raw)
					_, _ = c.Read(make([]byte, 1000)) // until it ends
					_ = c.Close()
				}()
				w.Config["url"] = "mqtt://odd.test:1"
				b, _ := w.start()
				time.Sleep(20 * time.Second)
				select {
				case <-b.Done():
				default:
					t.Errorf("%s: got no end, want one", name)
					b.Kill()
				}
				_ = ln.Close()
				if err := b.Wait(); err == nil || strings.Contains(err.Error(), "panic") {
					t.Errorf("%s: got %v, want an end", name, err)
				}
			})
		}
	})
}
