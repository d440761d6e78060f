package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/mqtt/mqttfake"
)

// cutBeforeAcks stores what is published next and cuts the connection before any
// acknowledgement goes.
func (w *world) cutBeforeAcks(publish func()) {
	w.T.Helper()
	b, _ := w.connected()
	release := w.Memory.Hold()
	publish()
	synctest.Wait()
	w.Net.Cut()
	release()
	if err := b.Wait(); err == nil {
		w.T.Fatal("got no error, want the cut")
	}
}

func TestEqualMessagesAreTwoEvents(t *testing.T) {
	for _, qos := range []byte{0, 1, 2} {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Config["qos"] = qos
			b, _ := w.connected()
			for range 3 {
				w.fake.Publish(message("same", qos))
			}
			synctest.Wait()
			w.wantKept("same", "same", "same")
			w.stop(b, channel.ErrDraining)
			b, _ = w.connected()
			w.fake.Publish(message("same", qos))
			synctest.Wait()
			if got := len(w.bodies()); got != 4 || w.Memory.Duplicates() != 0 {
				t.Errorf("QoS %d: got %d events and %d duplicates after a restart, want four and none", qos, got, w.Memory.Duplicates())
			}
			w.stop(b, channel.ErrDraining)
		})
	}
}

func TestWhatTheBrokerRepeatsIsTheSameEvent(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		bubble(t, mqttfake.Options{Window: 100}, func(w *world) {
			w.Config["qos"] = qos
			w.cutBeforeAcks(func() {
				for range 50 {
					w.fake.Publish(message("same", qos), message("other", qos))
				}
			})
			if got := len(w.bodies()); got != 100 || len(w.fake.Unacked(me)) != 100 {
				t.Fatalf("got %d kept and %d unacknowledged, want 100 of each", got, len(w.fake.Unacked(me)))
			}
			b, _ := w.connected()
			if got := len(w.bodies()); got != 100 || w.Memory.Duplicates() != 100 {
				t.Errorf("QoS %d: got %d events and %d duplicates, want 100 of each", qos, got, w.Memory.Duplicates())
			}
			w.wantAcked()
			w.stop(b, channel.ErrDraining)
		})
	}
	t.Run("after the end of a commit that is unknown", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			b, _ := w.connected()
			w.Memory.Fail(channel.ErrStore, true)
			w.publish(5)
			_ = b.Wait()
			w.Memory.Fail(nil, false)
			b, _ = w.connected()
			if got := len(w.bodies()); got != 5 {
				t.Errorf("got %d events, want five", got)
			}
			w.wantAcked()
			w.stop(b, channel.ErrDraining)
		})
	})
	t.Run("over many connections that hear little", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			for range 7 {
				w.cutBeforeAcks(func() { w.fake.Publish(message("same", 1)) })
			}
			b, _ := w.connected()
			if got := len(w.bodies()); got != 7 {
				t.Errorf("got %d events, want seven", got)
			}
			w.wantAcked()
			w.stop(b, channel.ErrDraining)
		})
	})
}

// A widespread broker sends all that waits for us at once, whatever its window, and
// hears our acknowledgements after it has.
func TestAFloodThatIsRepeatedAsAWholeIsTheSameEvents(t *testing.T) {
	const flood = 10_000
	bubble(t, mqttfake.Options{Flood: true}, func(w *world) {
		w.fake.Behave(me, mqttfake.Behaviour{Forgetful: true, NoPong: true})
		for round := range 3 {
			b, _ := w.connected()
			if round == 0 {
				for range flood {
					w.fake.Publish(message("same", 1))
				}
			}
			synctest.Wait()
			if n := len(w.Memory.Events()); n != flood {
				t.Errorf("round %d: got %d events, want %d", round, n, flood)
			}
			w.Net.Cut()
			_ = b.Wait()
			if got := len(w.Memory.Cursor()); got > 1000 {
				t.Errorf("got a cursor of %d bytes, want a few", got)
			}
		}
		w.fake.Behave(me, mqttfake.Behaviour{})
		b, _ := w.connected()
		synctest.Wait()
		w.wantAcked()
		w.stop(b, channel.ErrDraining)
	})
}

func TestARepetitionOfWhatWasNeverHeardIsNew(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		w.Memory.Hold() // the disk hangs, and nothing of it is ever stored
		w.publish(3)
		synctest.Wait()
		b.Kill()
		_ = b.Wait()
		w.Memory = copyOf(w.Memory)
		b, _ = w.connected()
		w.wantKept(`{"n":0}`, `{"n":1}`, `{"n":2}`)
		w.wantAcked()
		w.stop(b, channel.ErrDraining)
	})
}

// copyOf is a store that holds what another holds, without its faults.
func copyOf(m *channeltest.Memory) *channeltest.Memory {
	fresh := channeltest.NewMemory()
	b := channeltest.NewBench(nil, fresh)
	if err := channel.NewLink(b).Accept(nil, channel.Batch{Events: m.Events(), Cursor: m.Cursor()}); err != nil { //nolint:staticcheck // it looks at no context
		panic(err)
	}
	return fresh
}

func TestALostSessionForgetsWhatMayBeRepeated(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.cutBeforeAcks(func() { w.fake.Publish(message("same", 1)) })
		w.fake.Forget(me)
		b, _ := w.connected()
		w.fake.Publish(message("same", 1)) // with the packet id that the first one had
		synctest.Wait()
		w.wantKept("same", "same")
		if strings.Count(string(w.Memory.Cursor()), `"run"`) != 1 {
			t.Error("got something of the old session in the cursor, want nothing")
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestALostSessionIsForgottenBeforeTheNextMessage(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.cutBeforeAcks(func() { w.fake.Publish(message("same", 1)) })
		w.fake.Forget(me)
		ch, err := build(w.Config)
		if err != nil {
			t.Fatal(err)
		}
		b := channeltest.NewBench(w.Net.DialContext, w.Memory)
		ended := make(chan error, 1)
		go func() { ended <- ch.Run(w.T.Context(), channel.NewLink(lazy{b})) }()
		synctest.Wait()
		w.Memory.Fail(channel.ErrStore, false) // what comes now is never stored
		w.fake.Publish(message("same", 1))
		if err := <-ended; !errors.Is(err, channel.ErrStore) {
			t.Errorf("got %v, want the store's error", err)
		}
		w.Memory.Fail(nil, false)
		next, _ := w.connected() // where it is repeated, with the packet id of the first one
		w.wantKept("same", "same")
		w.wantAcked()
		w.stop(next, channel.ErrDraining)
	})
}

// lazy keeps a cursor that comes alone in memory, as the engine does, and loses it.
type lazy struct{ *channeltest.Bench }

func (l lazy) Accept(ctx context.Context, b channel.Batch) error {
	if len(b.Events) == 0 && !b.Urgent {
		return nil
	}
	return l.Bench.Accept(ctx, b)
}

func TestTheCursorStaysSmall(t *testing.T) {
	small := func(w *world, limit int) {
		w.T.Helper()
		if got := len(w.Memory.Cursor()); got > limit {
			w.T.Errorf("got a cursor of %d bytes, want at most %d", got, limit)
		}
	}
	t.Run("over many connections", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			for range 20 {
				b, _ := w.connected()
				w.publish(50)
				time.Sleep(30 * time.Second) // a ping has been answered
				w.stop(b, channel.ErrDraining)
				small(w, 2200)
			}
			if got := len(w.bodies()); got != 1000 || w.Memory.Duplicates() != 0 {
				t.Errorf("got %d events and %d duplicates, want 1000 and none", got, w.Memory.Duplicates())
			}
		})
	})
	t.Run("in a burst", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			b, _ := w.connected()
			w.publish(5000)
			synctest.Wait()
			small(w, 5000)
			w.stop(b, channel.ErrDraining)
		})
	})
	t.Run("even when no ping is answered", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.fake.Behave(me, mqttfake.Behaviour{NoPong: true})
			b, _ := w.connected()
			w.publish(3000)
			synctest.Wait()
			small(w, 23_000)
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestIdlingWritesNothing(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		before := w.Memory.Batches()
		time.Sleep(24 * time.Hour)
		if got := w.Memory.Batches() - before; got != 0 {
			t.Errorf("got %d commits in a day without messages, want none", got)
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestDedupe(t *testing.T) {
	id := func(s string) mqttfake.Message { return message(s, 1) }
	property := func(value string) mqttfake.Message {
		m := message("x", 1)
		m.Properties = [][2]string{{"other", "1"}, {"id", value}, {"id", "second"}}
		return m
	}
	for _, c := range []struct {
		name     string
		dedupe   string
		messages []mqttfake.Message
		want     []string // ids, "" = any made one
	}{
		{"a pointer to a string", "/id", []mqttfake.Message{id(`{"id":"x"}`), id(`{"id":"x","again":1}`), id(`{"id":"y"}`)}, []string{"devices/a/t#x", "devices/a/t#y"}},
		{"a pointer to a number", "/a/1", []mqttfake.Message{id(`{"a":[0,12345678901234567890]}`), id(`{"a":[1,12345678901234567890]}`)}, []string{"devices/a/t#12345678901234567890"}},
		{"escapes in a pointer", "/a~1b/~0", []mqttfake.Message{id(`{"a/b":{"~":"x"}}`)}, []string{"devices/a/t#x"}},
		{"another topic is another message", "/id", []mqttfake.Message{id(`{"id":1}`), {Topic: "devices/a/u", Payload: []byte(`{"id":1}`), QoS: 1}}, []string{"devices/a/t#1", "devices/a/u#1"}},
		{"what has none is told apart", "/id", []mqttfake.Message{id(`{}`), id(`{}`), id(`[]`), id(`{"id":null}`), id(`{"id":{}}`), id(`{"id":""}`), id("text"), id("")}, make([]string, 8)},
		{"a property", "user-property:id", []mqttfake.Message{property("x"), property("x"), property("y")}, []string{"devices/a/t#x", "devices/a/t#y"}},
		{"a property that is not there", "user-property:no", []mqttfake.Message{property("x"), property("x")}, make([]string, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
				w.Config["dedupe"] = c.dedupe
				b, _ := w.connected()
				w.fake.Publish(c.messages...)
				synctest.Wait()
				var got []string
				for _, e := range w.Memory.Events() {
					got = append(got, e.ID)
					if len(c.want) >= len(got) && c.want[len(got)-1] == "" {
						got[len(got)-1] = ""
					}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				w.wantAcked()
				w.stop(b, channel.ErrDraining)
			})
		})
	}
	t.Run("a long id is kept as its hash", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Config["dedupe"] = "/id"
			b, _ := w.connected()
			long := fmt.Sprintf(`{"id":%q}`, strings.Repeat("x", 1000))
			w.fake.Publish(id(long), id(long))
			synctest.Wait()
			if got := w.Memory.Events(); len(got) != 1 || len(got[0].ID) > 255 {
				t.Errorf("got %d events, the first with the id %q, want one with a short id", len(got), got[0].ID)
			}
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestTheDefaultClientID(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		delete(w.Config, "client_id")
		b, _ := w.connected()
		id := b.Readies()[0].Identity
		if len(id) != len("leasehold-bench-12345678") || !strings.HasPrefix(id, "leasehold-bench-") {
			t.Errorf("got %q, want leasehold, the installation and eight digits", id)
		}
		w.stop(b, channel.ErrDraining)
		w.Config["topics"] = []string{"elsewhere"}
		b, _ = w.connected()
		if got := b.Readies()[0].Identity; got != id {
			t.Errorf("got %q after a restart, want %q again", got, id)
		}
		w.stop(b, channel.ErrDraining)
		w.Memory = channeltest.NewMemory()
		b, _ = w.connected()
		if got := b.Readies()[0].Identity; got == id {
			t.Errorf("got %q from another store, too, want another", got)
		}
		w.stop(b, channel.ErrDraining)
	})
	t.Run("is stored before the broker hears it", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			delete(w.Config, "client_id")
			w.Memory.Fail(channel.ErrStore, false)
			b, _ := w.start()
			if err := b.Wait(); err == nil || w.Net.Dials() != 0 {
				t.Errorf("got %v and %d dials, want the store's error and none", err, w.Net.Dials())
			}
		})
	})
}

func TestACursorOfAnotherSessionSaysNothing(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		w.publish(1)
		synctest.Wait()
		w.stop(b, channel.ErrDraining)
		w.Config["client_id"] = "another"
		b, _ = w.connected()
		if got := b.Notices(); len(got) != 0 {
			t.Errorf("got the notices %v from another session, want none", got)
		}
		w.stop(b, channel.ErrDraining)
	})
	t.Run("one that is none is told and replaced", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			link := channel.NewLink(channeltest.NewBench(nil, w.Memory))
			if err := link.Accept(w.T.Context(), channel.Batch{Cursor: []byte(`{"place":7`)}); err != nil {
				t.Fatal(err)
			}
			b, _ := w.connected()
			if got := b.Notices(); len(got) != 1 || got[0].Code != "cursor" {
				t.Errorf("got the notices %v, want one of the cursor", got)
			}
			w.publish(1)
			synctest.Wait()
			w.wantKept(`{"n":0}`)
			w.stop(b, channel.ErrDraining)
		})
	})
}
