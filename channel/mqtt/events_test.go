package mqtt_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/mqtt/mqttfake"
)

func TestAMessageIsAnEvent(t *testing.T) {
	for _, c := range []struct {
		name    string
		message mqttfake.Message
		raw     string
		payload string
		kind    string // content type
	}{
		{"JSON travels as it is", mqttfake.Message{Payload: []byte(`{"t": 21.5}`), QoS: 1}, `{"t": 21.5}`, "", ""},
		{"a bare number is JSON, too", mqttfake.Message{Payload: []byte("21.5"), QoS: 1}, "21.5", "", ""},
		{"text travels as bytes", mqttfake.Message{Payload: []byte("on"), QoS: 1}, "", "on", "text/plain; charset=utf-8"},
		{"broken JSON is text", mqttfake.Message{Payload: []byte(`{"t":`), QoS: 1}, "", `{"t":`, "text/plain; charset=utf-8"},
		{"other bytes travel as they are", mqttfake.Message{Payload: []byte{0xff, 0, 1}, QoS: 1}, "", "\xff\x00\x01", "application/octet-stream"},
		{"nothing is a message, too", mqttfake.Message{QoS: 1}, "", "", "text/plain; charset=utf-8"},
		{"QoS 0", mqttfake.Message{Payload: []byte("x"), QoS: 0}, "", "x", "text/plain; charset=utf-8"},
		{"QoS 2 asked for as 1", mqttfake.Message{Payload: []byte("x"), QoS: 2}, "", "x", "text/plain; charset=utf-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, mqttfake.Options{}, func(w *world) {
				b, _ := w.connected()
				c.message.Topic = "devices/a/t"
				w.fake.Publish(c.message)
				synctest.Wait()
				events := w.Memory.Events()
				if len(events) != 1 {
					t.Fatalf("got %d events, want one", len(events))
				}
				e := events[0]
				if e.ID == "" || e.Type != "device" || e.Conversation != (channel.Ref{ID: "devices/a/t", Kind: "topic"}) {
					t.Errorf("got %+v, want a device's event with an id, its topic the conversation", e)
				}
				if string(e.Raw) != c.raw || string(e.Payload) != c.payload || e.ContentType != c.kind {
					t.Errorf("got raw %q, payload %q, %q, want %q, %q, %q", e.Raw, e.Payload, e.ContentType, c.raw, c.payload, c.kind)
				}
				if want := int(min(c.message.QoS, 1)); e.Device == nil || e.Device.QoS != want || e.Device.Retain {
					t.Errorf("got %+v, want QoS %d, not retained", e.Device, want)
				}
				w.wantAcked()
				w.stop(b, channel.ErrDraining)
			})
		})
	}
	t.Run("a content type and user properties of version 5", func(t *testing.T) {
		bubbleOf(t, "5", mqttfake.Options{}, func(w *world) {
			b, _ := w.connected()
			m := message("<x/>", 1)
			m.ContentType, m.Properties = "application/xml", [][2]string{{"k", "v"}, {"k", "w"}, {"", "e"}}
			w.fake.Publish(m)
			synctest.Wait()
			e := w.Memory.Events()[0]
			if e.ContentType != "application/xml" || e.Device.Properties["k"] != "w" || len(e.Device.Properties) != 2 {
				t.Errorf("got %q and %v, want both as sent, the last of equal names", e.ContentType, e.Device.Properties)
			}
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestQoS2IsHeardOnceAndCompleted(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.Config["qos"] = 2
		b, _ := w.connected()
		for range 50 {
			w.fake.Publish(message("x", 2))
		}
		synctest.Wait()
		if got := len(w.Memory.Events()); got != 50 || len(w.fake.Acked(me)) != 50 {
			t.Errorf("got %d kept and %d completed, want 50", got, len(w.fake.Acked(me)))
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestWhatIsPublishedWhileWeAreAwayIsHeardLater(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		w.stop(b, channel.ErrDraining)
		if all := w.fake.Connections(me); len(all) != 1 || !all[0].Goodbye {
			t.Errorf("got %+v, want one connection with a goodbye", all)
		}
		w.publish(3)
		w.fake.Publish(message("weak", 0))
		b, _ = w.connected()
		w.wantKept(`{"n":0}`, `{"n":1}`, `{"n":2}`)
		w.wantAcked()
		if got := len(b.Notices()); got != 0 {
			t.Errorf("got the notices %v, want none", b.Notices())
		}
		w.stop(b, channel.ErrDraining)
	})
}

func TestASessionThatIsLostIsTold(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		if got := len(b.Notices()); got != 0 {
			t.Errorf("got the notices %v from a first connection, want none", b.Notices())
		}
		w.stop(b, channel.ErrDraining)
		w.fake.Forget(me)
		b, _ = w.connected()
		if got := b.Notices(); len(got) != 1 || got[0].Code != "session_lost" {
			t.Errorf("got the notices %v, want session_lost", got)
		}
		w.publish(1) // it has subscribed again
		synctest.Wait()
		w.wantKept(`{"n":0}`)
		w.stop(b, channel.ErrDraining)
	})
}

func TestWithoutASessionNothingWaitsForUs(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.Config["session_expiry"] = "0s"
		for range 2 {
			b, _ := w.connected()
			w.stop(b, channel.ErrDraining)
			if got := b.Notices(); len(got) != 0 {
				t.Errorf("got the notices %v, want none: no session was asked for", got)
			}
			w.publish(1)
		}
		w.wantKept()
		if left := w.fake.Unacked(me); len(left) != 0 {
			t.Errorf("got %d messages kept by the broker, want none", len(left))
		}
	})
}

func TestARetainedMessageIsHeardOnce(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.fake.Publish(mqttfake.Message{Topic: "devices/a/state", Payload: []byte("on"), QoS: 1, Retain: true})
		for range 3 {
			b, _ := w.connected()
			w.stop(b, channel.ErrDraining)
		}
		b, _ := w.connected()
		w.fake.Cut(me)
		_ = b.Wait()
		b, _ = w.connected()
		w.wantKept("on")
		if e := w.Memory.Events()[0]; !e.Device.Retain {
			t.Errorf("got %+v, want it told that it was retained", e.Device)
		}
		w.stop(b, channel.ErrDraining)
		w.fake.Forget(me) // whether it has changed meanwhile nobody can tell
		b, _ = w.connected()
		w.wantKept("on", "on")
		w.stop(b, channel.ErrDraining)
	})
}

func TestSubscriptionsFollowTheConfig(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		w.Config["topics"] = []string{"x/1", "x/2"}
		b, _ := w.connected()
		w.stop(b, channel.ErrReplaced)
		w.Config["topics"] = []string{"x/2", "x/3"}
		for i := range 2 {
			b, _ = w.connected()
			time.Sleep(time.Second)
			if got := w.fake.Filters(me); !slices.Equal(got, []string{"x/2", "x/3"}) {
				t.Errorf("round %d: got the subscriptions %q, want x/2 and x/3", i, got)
			}
			w.stop(b, channel.ErrReplaced)
		}
		last := w.fake.Connections(me)[2]
		if want := map[bool]int{true: 1, false: 0}[w.is5()]; last.Subscribes != want {
			t.Errorf("got %d SUBSCRIBE for a session that has all, want %d", last.Subscribes, want)
		}
		w.Config["qos"] = 2
		b, _ = w.connected()
		w.fake.Publish(mqttfake.Message{Topic: "x/3", QoS: 2})
		synctest.Wait()
		if got := w.Memory.Events(); len(got) != 1 || got[0].Device.QoS != 2 {
			t.Errorf("got %+v, want it with the new QoS", got)
		}
		w.stop(b, channel.ErrReplaced)
	})
	t.Run("a shared one", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			w.Config["topics"] = []string{"$share/group/x/+"}
			b, _ := w.connected()
			w.fake.Publish(mqttfake.Message{Topic: "x/1", Payload: []byte("shared"), QoS: 1})
			synctest.Wait()
			w.wantKept("shared")
			w.stop(b, channel.ErrDraining)
		})
	})
	t.Run("more topics than one request may name", func(t *testing.T) {
		bubble(t, mqttfake.Options{}, func(w *world) {
			var topics []string
			for i := range 20 {
				topics = append(topics, "x/"+string(rune('a'+i)))
			}
			w.Config["topics"] = topics
			b, _ := w.connected()
			if got := w.fake.Filters(me); !slices.Equal(got, topics) {
				t.Errorf("got %q, want all", got)
			}
			if got := w.fake.Connections(me)[0].Subscribes; got != 3 {
				t.Errorf("got %d requests, want 3 of at most eight", got)
			}
			w.stop(b, channel.ErrDraining)
		})
	})
}

func TestABurstIsStoredInGroupsAndAcknowledgedInOrder(t *testing.T) {
	bubble(t, mqttfake.Options{Window: 200}, func(w *world) {
		b, _ := w.connected()
		w.publish(5000)
		synctest.Wait()
		if got := len(w.Memory.Events()); got != 5000 {
			t.Errorf("got %d kept, want 5000", got)
		}
		w.wantAcked()
		w.stop(b, channel.ErrDraining)
	})
}

func TestAStoreThatTakesNothingAcknowledgesNothing(t *testing.T) {
	bubble(t, mqttfake.Options{}, func(w *world) {
		b, _ := w.connected()
		w.Memory.Fail(channel.ErrStore, false)
		w.publish(3)
		if err := b.Wait(); channel.Classify(err).Err == nil || len(w.fake.Unacked(me)) != 3 {
			t.Errorf("got %v and %d unacknowledged, want the end and all three", err, len(w.fake.Unacked(me)))
		}
		w.Memory.Fail(nil, false)
		b, _ = w.connected()
		w.wantKept(`{"n":0}`, `{"n":1}`, `{"n":2}`)
		w.wantAcked()
		w.stop(b, channel.ErrDraining)
	})
}
