package mqtt_test

import (
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/mqtt"
	"leasehold/channel/mqtt/mqttfake"
)

func TestADayOfSilenceEndsNothing(t *testing.T) {
	for name, o := range map[string]mqttfake.Options{"a keep-alive of ours": {}, "one of the broker's": {KeepAlive: 7}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, o, func(w *world) {
				b, _ := w.connected()
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				all := w.fake.Connections(me)
				if len(all) != 1 || w.fake.Live(me) != 1 {
					t.Fatalf("got %d connections, want the first one still", len(all))
				}
				seconds := 30
				if o.KeepAlive > 0 && w.is5() {
					seconds = 7
				}
				day := int((24 * time.Hour).Seconds())
				if got := all[0].Pings; got < day/seconds || got > day*4/3/seconds {
					t.Errorf("got %d pings in a day, want %d to %d", got, day/seconds, day*4/3/seconds)
				}
				if n, at := b.Alives(); n < all[0].Pings || time.Since(at) > time.Minute {
					t.Errorf("got %d signs of life, the last one %s ago, want one for each answer", n, time.Since(at))
				}
				w.stop(b, channel.ErrDraining)
			})
		})
	}
}

func TestAMuteBrokerIsNoticedWithinTwiceTheKeepAlive(t *testing.T) {
	for name, mute := range map[string]func(w *world){
		"the line":           func(w *world) { w.Net.BlackholeExisting() },
		"the broker":         func(w *world) { w.fake.Silence(me) },
		"all lines for ever": func(w *world) { w.Net.Pause() },
	} {
		for _, keep := range []time.Duration{time.Second, 5 * time.Second, 11 * time.Second, 30 * time.Second, 10 * time.Minute} {
			t.Run(name+", "+keep.String(), func(t *testing.T) {
				bubble(t, mqttfake.Options{}, func(w *world) {
					w.Config["keep_alive"] = keep.String()
					b, _ := w.connected()
					time.Sleep(time.Hour + keep/3)
					mute(w)
					start := time.Now()
					w.WantExit(b, channel.Transient, "silent")
					if took := time.Since(start); took > 2*keep {
						t.Errorf("got it noticed after %s, want at most %s", took, 2*keep)
					}
				})
			})
		}
	}
	t.Run("while messages wait to be acknowledged", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			b, _ := w.connected()
			for range 20 {
				w.publish(1)
				time.Sleep(time.Second)
			}
			w.Net.BlackholeExisting()
			start := time.Now()
			w.publish(50)
			w.WantExit(b, channel.Transient, "silent")
			if took := time.Since(start); took > time.Minute {
				t.Errorf("got it noticed after %s, want at most 1m", took)
			}
		})
	})
	t.Run("as the type says", func(t *testing.T) {
		if got := mqtt.Spec.Deaf; got != time.Minute {
			t.Errorf("got %s, want twice the default keep_alive", got)
		}
	})
}

func TestABusyStreamIsASignOfLife(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.fake.Behave(me, mqttfake.Behaviour{NoPong: true}) // the answer is always late
		w.Config["qos"] = 0
		b, _ := w.connected()
		for range 300 {
			w.fake.Publish(message("x", 0))
			time.Sleep(time.Second)
		}
		select {
		case <-b.Done():
			t.Fatalf("got %v, want the connection kept", b.Wait())
		default:
		}
		if got := w.fake.Connections(me)[0].Pings; got < 300/30 {
			t.Errorf("got %d pings in five minutes, want one in 30 s at least: we say nothing else", got)
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestASlowDiskIsNoSilence(t *testing.T) {
	bubble(t, mqttfake.Options{Patience: time.Hour}, func(w *world) {
		w.Config["qos"] = 0
		b, _ := w.connected()
		release := w.Memory.Hold()
		for range 2000 { // more than the inbox and the buffers hold
			w.fake.Publish(message("0123456789012345678901234567890123456789", 0))
		}
		time.Sleep(5 * time.Minute)
		select {
		case <-b.Done():
			t.Fatalf("got %v while the disk hung, want the connection kept", b.Wait())
		default:
		}
		release()
		synctest.Wait()
		if got := len(w.bodies()); got != 2000 {
			t.Errorf("got %d kept, want 2000", got)
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestPingsAreSpread(t *testing.T) {
	bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
		var all []*channeltest.Bench
		for i := range 100 {
			w.Config["client_id"] = "c" + time.Duration(i).String()
			b, _ := w.start()
			all = append(all, b)
		}
		pings := func() (n int) {
			for i := range 100 {
				n += w.fake.Connections("c" + time.Duration(i).String())[0].Pings
			}
			return n
		}
		time.Sleep(5 * time.Minute)
		for range 60 {
			before := pings()
			time.Sleep(time.Second)
			if got := pings() - before; got > 20 { // 100 in 25 s: 4 a second
				t.Errorf("got %d pings in one second, want them spread", got)
			}
		}
		for _, b := range all {
			_ = b.Stop(channel.ErrDraining)
		}
	})
}
