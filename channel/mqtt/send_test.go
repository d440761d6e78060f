package mqtt_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/mqtt/mqttfake"
)

func to(topic, text string) channel.Message {
	return channel.Message{Op: "send", Conversation: topic, Text: text}
}

func wantOutcome(t *testing.T, err error, want channel.SendOutcome, words string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("got no error, want %q", words)
	case channel.Outcome(err) != want || !strings.Contains(err.Error(), words):
		t.Errorf("got outcome %d (%v), want %d and %q", channel.Outcome(err), err, want, words)
	}
}

func TestSendPublishes(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, s := w.connected()
		for _, m := range []channel.Message{
			to("lamps/1", "on"),
			{Op: "send", Conversation: "lamps/1", Text: "the fallback", Native: []byte(`{"on":true}`)},
		} {
			if _, err := s.Send(w.T.Context(), m); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
		}
		got := w.fake.Received()
		if len(got) != 2 || got[0].Topic != "lamps/1" || string(got[0].Payload) != "on" || got[0].QoS != 1 || string(got[1].Payload) != `{"on":true}` {
			t.Errorf("got %+v, want both as they were sent, with QoS 1", got)
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestSendRefusesWhatCannotBePublished(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, s := w.connected()
		for words, m := range map[string]channel.Message{
			"can send and nothing else": {Op: "edit", Conversation: "x", Text: "y"},
			"the topic: is empty":       to("", "x"),
			"holds a + or a #":          to("x/#", "x"),
			"NUL":                       to("x\x00", "x"),
			"nothing to publish":        to("x", ""),
		} {
			_, err := s.Send(w.T.Context(), m)
			wantOutcome(t, err, channel.SendRefused, words)
		}
		if got := w.fake.Received(); len(got) != 0 {
			t.Errorf("got %+v published, want nothing", got)
		}
		w.stop(b, channel.ErrDraining)
	})
	t.Run("by the broker's own limits", func(t *testing.T) {
		bubbleOf(t, "5", mqttfake.Options{Largest: 100}, func(w *world) {
			b, s := w.connected()
			for range 150 { // more than may be on their way
				_, err := s.Send(w.T.Context(), to("x", strings.Repeat("y", 200)))
				wantOutcome(t, err, channel.SendRefused, "takes 100 at most")
			}
			if _, err := s.Send(w.T.Context(), to("x", "y")); err != nil {
				t.Errorf("got %v after refusals, want it taken", err)
			}
			w.stop(b, channel.ErrDraining)
			w.fake.Behave(me, mqttfake.Behaviour{NoQoS: true})
			b, s = w.connected()
			_, err := s.Send(w.T.Context(), to("x", "y"))
			wantOutcome(t, err, channel.SendRefused, "takes no QoS 1")
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestSendSaysWhatTheBrokerSaid(t *testing.T) {
	for code, want := range map[byte]channel.SendOutcome{
		0x87: channel.SendRefused, 0x90: channel.SendRefused, 0x99: channel.SendRefused,
		0x80: channel.SendNot, 0x83: channel.SendNot, 0x97: channel.SendNot,
	} {
		bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{Puback: code})
			b, s := w.connected()
			_, err := s.Send(w.T.Context(), to("x", "y"))
			wantOutcome(t, err, want, "the broker did not take the message")
			if got := channel.Classify(err); code == 0x97 && (got.Class != channel.ClassRateLimited || got.After != 30*time.Second || !got.All) {
				t.Errorf("got %s after %s, want everything to wait 30s", got.Class, got.After)
			}
			w.stop(b, channel.ErrDraining)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{Puback: 0x10})
			b, s := w.connected()
			if _, err := s.Send(w.T.Context(), to("x", "y")); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestSendIsHonestAboutItsOutcome(t *testing.T) {
	t.Run("before the broker has taken us nothing is sent", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{NoSuback: true})
			b, s := w.start()
			synctest.Wait()
			_, err := s.Send(w.T.Context(), to("x", "y"))
			wantOutcome(t, err, channel.SendNot, "has not taken our connection")
			_ = b.Stop(channel.ErrDraining)
		})
	})
	t.Run("after the end nothing is sent", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			b, s := w.connected()
			w.stop(b, channel.ErrDraining)
			_, err := s.Send(w.T.Context(), to("x", "y"))
			wantOutcome(t, err, channel.SendNot, "has not taken our connection")
		})
	})
	t.Run("what was written and not acknowledged is unknown", func(t *testing.T) {
		for name, end := range map[string]func(w *world){
			"in time":                func(*world) {},
			"before the cut":         func(w *world) { w.Net.Cut() },
			"on a line that is dead": func(w *world) { w.Net.BlackholeExisting() },
		} {
			bubble(t, mqttfake.Options{}, func(w *world) {
				w.fake.Behave(me, mqttfake.Behaviour{NoPuback: true})
				b, s := w.connected()
				start := time.Now()
				time.AfterFunc(time.Second, func() { end(w) })
				_, err := s.Send(w.T.Context(), to("x", "y"))
				wantOutcome(t, err, channel.SendUnknown, "")
				if took := time.Since(start); took > 15*time.Second {
					t.Errorf("%s: got an answer after %s, want within 15s", name, took)
				}
				b.Kill()
				_ = b.Wait()
			})
		}
	})
	t.Run("a caller that goes leaves it unknown", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{NoPuback: true})
			b, s := w.connected()
			ctx, cancel := context.WithTimeout(w.T.Context(), time.Second)
			defer cancel()
			_, err := s.Send(ctx, to("x", "y"))
			wantOutcome(t, err, channel.SendUnknown, "deadline")
			w.stop(b, channel.ErrDraining)
		})
	})
	t.Run("what cannot be written was not sent", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			b, s := w.connected()
			w.Net.Pause()
			start := time.Now()
			_, err := s.Send(w.T.Context(), to("x", strings.Repeat("y", 200<<10))) // more than the buffers hold
			wantOutcome(t, err, channel.SendNot, "a write did not end within 10s")
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("got an answer after %s, want within 10s", took)
			}
			w.WantExit(b, channel.Transient, "write_timeout")
		})
	})
}

func TestPublicationsWaitForTheirTurn(t *testing.T) {
	bubble(t, mqttfake.Options{InFlight: 3}, func(w *world) {
		b, s := w.connected()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if _, err := s.Send(w.T.Context(), to("x", "y")); err != nil {
					t.Errorf("got %v, want it taken", err)
				}
			})
		}
		all.Wait()
		if got := len(w.fake.Received()); got != 200 {
			t.Errorf("got %d published, want 200", got)
		}
		w.stop(b, channel.ErrDraining)
	})
	t.Run("for as long as a send may last", func(t *testing.T) {
		bubbleOf(t, "5", mqttfake.Options{InFlight: 1}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{NoPuback: true})
			b, s := w.connected()
			first := make(chan error, 1)
			go func() {
				_, err := s.Send(w.T.Context(), to("x", "1"))
				first <- err
			}()
			synctest.Wait()
			_, err := s.Send(w.T.Context(), to("x", "2"))
			wantOutcome(t, err, channel.SendNot, "wait for a turn")
			wantOutcome(t, <-first, channel.SendUnknown, "")
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestOurOwnMessages(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, s := w.connected()
		if _, err := s.Send(w.T.Context(), to("devices/a/t", "mine")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.is5() {
			w.wantKept() // the broker keeps them from us
		} else {
			w.wantKept("mine") // it cannot
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestASenderIsSafeForConcurrentUse(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, s := w.connected()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for {
					if _, err := s.Send(w.T.Context(), to("x", "y")); err != nil {
						if errors.Is(err, context.Canceled) {
							t.Errorf("got %v, want an outcome", err)
						}
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		w.publish(1000)
		time.Sleep(time.Second)
		w.stop(b, channel.ErrDraining)
		all.Wait()
	})
}
