package mqtt_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/mqtt/mqttfake"
)

func TestStopReturnsAtOnceInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"connected":               func(*world) {},
		"dialling":                func(w *world) { w.Net.Blackhole(true) },
		"waiting for the CONNACK": func(w *world) { w.fake.Behave(me, mqttfake.Behaviour{Stall: true}) },
		"waiting for the SUBACK":  func(w *world) { w.fake.Behave(me, mqttfake.Behaviour{NoSuback: true}) },
		"mute":                    func(w *world) { time.AfterFunc(time.Second, w.Net.Pause) },
		"a broker that reads nothing": func(w *world) {
			w.fake.Session(me, "#")
			w.fake.Behave(me, mqttfake.Behaviour{Deaf: true})
			for range 300 {
				w.fake.Publish(message("x", 1))
			}
		},
		"a flood": func(w *world) { time.AfterFunc(time.Second, func() { w.publish(5_000) }) },
	} {
		for _, cause := range []error{channel.ErrDraining, channel.ErrReplaced, channel.ErrRemoved, channel.ErrParked, channel.ErrFenced} {
			t.Run(name+", "+cause.Error(), func(t *testing.T) {
				bubble(t, mqttfake.Options{}, func(w *world) {
					prepare(w)
					b, _ := w.start()
					time.Sleep(4 * time.Second)
					w.stop(b, cause)
				})
			})
		}
	}
	t.Run("the kill ends it while the disk hangs", func(t *testing.T) {
		bubble(t, mqttfake.Options{Window: 1000}, func(w *world) {
			b, _ := w.connected()
			w.Memory.Hold()
			w.publish(5000)
			synctest.Wait()
			b.Kill()
			if err := b.Wait(); err != nil && !errors.Is(err, channel.ErrFenced) {
				t.Errorf("got %v, want nil or the lost lease", err)
			}
			if n := len(w.fake.Acked(me)); n != 0 {
				t.Errorf("got %d acknowledged, want none", n)
			}
		})
	})
}

func TestALostLeaseWritesNothingMore(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		release := w.Memory.Hold()
		w.publish(10)
		synctest.Wait()
		time.AfterFunc(100*time.Millisecond, release)
		if err := b.Stop(channel.ErrFenced); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		synctest.Wait()
		if n := len(w.fake.Acked(me)); n != 0 {
			t.Errorf("got %d acknowledged after the lease was lost, want none", n)
		}
		if w.fake.Connections(me)[0].Goodbye {
			t.Error("got a goodbye after the lease was lost, want none")
		}
	})
}

func TestADrainCommitsAndAcknowledgesWhatWasHeard(t *testing.T) {
	bubble(t, mqttfake.Options{Window: 100}, func(w *world) {
		b, _ := w.connected()
		release := w.Memory.Hold()
		w.publish(100)
		synctest.Wait()
		time.AfterFunc(500*time.Millisecond, release)
		w.stop(b, channel.ErrDraining)
		if got := len(w.bodies()); got != 100 {
			t.Errorf("got %d kept, want 100", got)
		}
		w.wantAcked()
	})
}

func TestAnAcknowledgementThatIsNotTakenEndsTheConnection(t *testing.T) {
	bubble(t, mqttfake.Options{Window: 30_000}, func(w *world) {
		if w.is5() {
			return // there the broker may send no more than a hundred
		}
		w.fake.Session(me, "#")
		w.fake.Behave(me, mqttfake.Behaviour{Deaf: true})
		w.Config["dedupe"] = "/n"
		w.publish(18_000) // four bytes each fill the buffers
		b, _ := w.start()
		w.WantExit(b, channel.Transient, "write_timeout")
		if got := len(w.bodies()); got < 16_000 {
			t.Errorf("got %d kept, want all that was heard", got)
		}
	})
}

func TestAMessageThatIsTooLarge(t *testing.T) {
	t.Run("for the store is dropped there and acknowledged", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Memory.Limit(1000)
			b, _ := w.connected()
			w.fake.Publish(message(strings.Repeat("x", 2000), 1), message("after", 1))
			synctest.Wait()
			w.wantKept("after")
			w.wantAcked()
			w.stop(b, channel.ErrDraining)
		})
	})
	for _, qos := range []byte{0, 1, 2} {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Config["qos"] = qos
			b, _ := w.connected()
			w.fake.Publish(message(strings.Repeat("x", 17<<20), qos), message("after", qos))
			synctest.Wait()
			w.wantKept("after")
			w.wantAcked()
			if got := b.Notices(); len(got) != 1 || got[0].Code != "message_too_large" || !strings.Contains(got[0].Words, "devices/a/t") {
				t.Errorf("QoS %d: got the notices %v, want one of the topic", qos, got)
			}
			w.stop(b, channel.ErrDraining)
		})
	}
	t.Run("a message of 10 MB passes", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			b, _ := w.connected()
			big := bytes.Repeat([]byte("x"), 10<<20)
			w.fake.Publish(mqttfake.Message{Topic: "devices/a/t", Payload: big, QoS: 1})
			synctest.Wait()
			if e := w.Memory.Events(); len(e) != 1 || !bytes.Equal(e[0].Payload, big) {
				t.Errorf("got %d events, want the one", len(e))
			}
			w.wantAcked()
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestMemoryIsBoundedWhileTheDiskHangs(t *testing.T) {
	bubble(t, mqttfake.Options{Window: 1000}, func(w *world) {
		var read atomic.Int64
		ch, err := build(w.Config)
		if err != nil {
			t.Fatal(err)
		}
		b := channeltest.NewBench(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := w.Net.DialContext(ctx, network, addr)
			return counted{c, &read}, err
		}, w.Memory)
		b.Start(w.T.Context(), ch)
		synctest.Wait()
		release := w.Memory.Hold()
		for range 30 {
			w.fake.Publish(message(strings.Repeat("x", 1<<20), 1))
		}
		synctest.Wait()
		if got := read.Load(); got > 6<<20 {
			t.Errorf("got %d MB read while nothing is stored, want a few", got>>20)
		}
		release()
		synctest.Wait()
		if got := len(w.bodies()); got != 30 {
			t.Errorf("got %d kept, want all 30", got)
		}
		w.stop(b, channel.ErrDraining)
	})
}

// counted counts what is read.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}
