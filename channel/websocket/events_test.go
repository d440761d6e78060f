package websocket_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/websocket/websocketfake"
)

func TestEventsAreStoredAndThenAcknowledged(t *testing.T) {
	bubble(t, websocketfake.Options{Token: func(string) string { return token }}, func(w *world) {
		b := w.connected()
		w.fake.Push(bot, 1000)
		synctest.Wait()
		if got := w.Kept(); !slices.Equal(got, w.fake.Acked(bot)) || len(got) != 1000 {
			t.Errorf("got %d events kept and %d acknowledged, want the same 1000 in order", len(got), w.fake.AckedCount(bot))
		}
		first := w.Memory.Events()[0]
		if first.ID != "a-000001" || first.Type != "message" || first.Text != "event 1 of a" || first.Conversation.ID != "c0" || first.Sender.ID != "u0" {
			t.Errorf("got %+v, want the fields that the pointers name", first)
		}
		if want := time.Now().UTC(); !first.Time.Equal(want) {
			t.Errorf("got time %s, want %s", first.Time, want)
		}
		if !strings.Contains(string(first.Raw), `"seq":1`) || first.Payload != nil {
			t.Errorf("got raw %s, want the platform's JSON", first.Raw)
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
		if got := w.lastConnection().CloseCode; got != 1001 {
			t.Errorf("got close code %d, want 1001", got)
		}
	})
}

func TestNothingIsAcknowledgedBeforeItIsStored(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		release := w.Memory.Hold()
		w.fake.Push(bot, 10)
		time.Sleep(time.Minute) // the disk hangs; the platform is heard all the same
		if n := w.fake.AckedCount(bot); n != 0 {
			t.Errorf("got %d acknowledged while the disk hangs, want none", n)
		}
		release()
		synctest.Wait()
		if n := w.fake.AckedCount(bot); n != 10 {
			t.Errorf("got %d acknowledged, want all 10", n)
		}
		w.Stop(b, channel.ErrRemoved)
		if got := w.lastConnection().CloseCode; got != 1000 {
			t.Errorf("got close code %d for a removed installation, want 1000", got)
		}
	})
}

func TestAFailedCommitEndsTheConnectionUnacknowledged(t *testing.T) {
	for name, persisted := range map[string]bool{"failed": false, "failed but persisted": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				b := w.connected()
				w.Memory.Fail(channel.ErrStore, persisted)
				w.fake.Push(bot, 3)
				if err := b.Wait(); err == nil || channel.Classify(err).Class != channel.Transient {
					t.Errorf("got %v, want the store's failure, transient", err)
				}
				if n := w.fake.AckedCount(bot); n != 0 {
					t.Errorf("got %d acknowledged, want none", n)
				}
				w.Memory.Fail(nil, false)
				b = w.connected()
				synctest.Wait()
				if got := w.Kept(); !slices.Equal(got, w.fake.Acked(bot)) || len(got) != 3 {
					t.Errorf("got %q kept and %q acknowledged after the next connection, want all three once", got, w.fake.Acked(bot))
				}
				w.Stop(b, channel.ErrDraining)
			})
		})
	}
}

func TestACutBetweenCommitAndAcknowledgementDeliversOnce(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		release := w.Memory.Hold()
		w.fake.Push(bot, 5)
		synctest.Wait()
		w.Net.Cut()
		synctest.Wait()
		release()
		w.WantExit(b, channel.Transient, "close_1006")
		if len(w.Kept()) == 0 || w.fake.AckedCount(bot) != 0 {
			t.Errorf("got %d kept and %d acknowledged, want some and none", len(w.Kept()), w.fake.AckedCount(bot))
		}
		b = w.connected()
		if got := w.Kept(); len(got) != 5 || w.fake.AckedCount(bot) != 5 {
			t.Errorf("got %q and %d acknowledged, want five events once and acknowledged", got, w.fake.AckedCount(bot))
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
	})
}

func TestASlowDiskHoldsUpNobodyElse(t *testing.T) {
	bubble(t, websocketfake.Options{Patience: time.Hour}, func(w *world) {
		// Its pongs would be stuck behind its events.
		w.fake.Behave(bot, websocketfake.Behaviour{NoPong: true})
		b := w.connected()
		release := w.Memory.Hold()
		w.fake.Push(bot, 5000) // more than may wait: the reader stops
		time.Sleep(10 * time.Minute)
		select {
		case <-b.Done():
			t.Fatalf("got an end (%v) because the disk was slow, want none", b.Wait())
		default:
		}
		release()
		time.Sleep(time.Second)
		if n := w.fake.AckedCount(bot); n != 5000 {
			t.Errorf("got %d acknowledged, want all 5000", n)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestWhatWaitsForTheDiskIsBounded(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		release := w.Memory.Hold()
		big := []byte(`{"type":"message","id":"big","text":"` + strings.Repeat("x", 900<<10) + `"}`)
		for range 50 {
			w.fake.PushFrame(bot, "big", big)
		}
		synctest.Wait()
		if got := w.lastConnection().Sent; got > 8 { // 4 MiB and what the buffers hold
			t.Errorf("got %d events of 900 kB taken while the disk hangs, want at most 8", got)
		}
		release()
		w.Stop(b, channel.ErrDraining)
	})
}

func TestUnknownFramesAreForwardedRaw(t *testing.T) {
	for _, c := range []struct {
		name, id string
		frame    string
		check    func(e channel.Event) bool
	}{
		{"a type that nobody knows", "x1", `{"type":"brand_new","id":"x1","deep":[{"a":null}]}`, func(e channel.Event) bool { return e.Type == "brand_new" && e.Raw != nil }},
		{"no type", "x1", `{"id":"x1"}`, func(e channel.Event) bool { return e.Type == "raw" && string(e.Raw) == `{"id":"x1"}` }},
		{"a type that is no text", "x1", `{"id":"x1","type":{}}`, func(e channel.Event) bool { return e.Type == "raw" }},
		{"a numeric id", "7", `{"id":7}`, func(e channel.Event) bool { return e.ID == "7" }},
		{"a list", "", `[1,2]`, func(e channel.Event) bool { return e.Type == "raw" && string(e.Raw) == `[1,2]` }},
		{"no JSON", "", `hello there`, func(e channel.Event) bool {
			return e.Raw == nil && string(e.Payload) == "hello there" && e.ContentType == "text/plain; charset=utf-8"
		}},
		{"half of JSON", "", `{"id":"x1"`, func(e channel.Event) bool { return e.Raw == nil && string(e.Payload) == `{"id":"x1"` }},
		{"invalid UTF-8 in JSON", "", "{\"id\":\"\xff\"}", func(e channel.Event) bool {
			return e.Raw == nil && bytes.Contains(e.Payload, []byte{0xff}) && e.ContentType == "application/octet-stream"
		}},
		{"an empty frame", "", ``, func(e channel.Event) bool { return e.Type == "raw" && e.Raw == nil && len(e.Payload) == 0 }},
		{"a year that JSON does not have", "x1", `{"id":"x1","time":"9999-12-31T23:59:59-01:00"}`, func(e channel.Event) bool { return e.Time.IsZero() }},
		{"an id of a megabyte", "", `{"id":"` + strings.Repeat("i", 500_000) + `"}`, func(e channel.Event) bool { return strings.HasPrefix(e.ID, "sha256:") && len(e.ID) < 80 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				b := w.connected()
				w.fake.PushFrame(bot, c.id, []byte(c.frame))
				w.fake.Push(bot, 1)
				synctest.Wait()
				events := w.Memory.Events()
				if len(events) != 2 || !c.check(events[0]) || events[0].ID == "" {
					t.Fatalf("got %d events, the first %+v, want it forwarded and the next one, too", len(events), events[0])
				}
				if c.id != "" && w.fake.AckedCount(bot) != 2 {
					t.Errorf("got %d acknowledged, want both", w.fake.AckedCount(bot))
				}
				w.Stop(b, channel.ErrDraining)
			})
		})
	}
}

func TestBinaryMessages(t *testing.T) {
	t.Run("they are events with a payload", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b := w.connected()
			w.fake.SayBytes(bot, []byte{0, 1, 0xff})
			synctest.Wait()
			e := w.Memory.Events()
			if len(e) != 1 || !bytes.Equal(e[0].Payload, []byte{0, 1, 0xff}) || e[0].Raw != nil || e[0].ContentType != "application/octet-stream" {
				t.Errorf("got %+v, want the bytes", e)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("they end the connection where they are refused", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["binary"] = "refuse"
			b := w.connected()
			w.fake.SayBytes(bot, []byte{0})
			w.WantExit(b, channel.ClassRejected, "binary")
		})
	})
}

func TestAnEventWithoutAnIDMayRepeat(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		delete(w.Config, "pointers")
		delete(w.Config, "ack")
		b := w.connected()
		w.fake.Say(bot, `{"x":1}`)
		w.fake.Say(bot, `{"x":1}`)
		synctest.Wait()
		first := w.Kept()
		w.Stop(b, channel.ErrDraining)
		b = w.connected()
		w.fake.Say(bot, `{"x":1}`)
		synctest.Wait()
		if got := w.Kept(); len(first) != 2 || len(got) != 3 {
			t.Errorf("got %q and then %q, want every one its own event, over connections, too", first, got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestAnOversizedEventIsDroppedToldAndAcknowledged(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		w.Config["max_size"] = 10_000
		b := w.connected()
		w.fake.PushFrame(bot, "big", []byte(`{"id":"big","text":"`+strings.Repeat("x", 2<<20)+`"}`))
		w.fake.PushFrame(bot, "fits", []byte(`{"id":"fits","text":"`+strings.Repeat("x", 10_000-len(`{"id":"fits","text":""}`))+`"}`))
		synctest.Wait()
		if got := w.Kept(); !slices.Equal(got, []string{"fits"}) {
			t.Errorf("got %q, want the one that fits to the byte", got)
		}
		if got := w.fake.Acked(bot); !slices.Equal(got, []string{"big", "fits"}) {
			t.Errorf("got %q acknowledged, want both", got)
		}
		if n := b.Notices(); len(n) != 1 || n[0].Code != "event_too_large" {
			t.Errorf("got notices %+v, want one", n)
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
	})
}

func TestAMessagePastTheReadLimitEndsTheConnection(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		w.fake.SayBytes(bot, make([]byte, 17<<20))
		w.WantExit(b, channel.Transient, "frame_too_large")
		if len(w.Kept()) != 0 {
			t.Errorf("got %q kept, want nothing", w.Kept())
		}
	})
}

func TestAMessageThatEndsEarlyIsNoEvent(t *testing.T) {
	header := []byte{0x81, 126, 0x10, 0x00} // a text message of 4,096 bytes
	for _, n := range []int{0, 1, 511, 512, 513, 1024, 4095} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				b := w.connected()
				w.fake.Raw(bot, append(slices.Clone(header), bytes.Repeat([]byte("x"), n)...))
				synctest.Wait()
				w.Net.HalfClose()
				w.WantExit(b, channel.Transient, "close_1006")
				if got := w.Kept(); len(got) != 0 {
					t.Errorf("got %q kept of a message whose end never came, want nothing", got)
				}
			})
		})
	}
}

func TestFramesThatAreNoneEndTheConnection(t *testing.T) {
	for name, raw := range map[string][]byte{
		"garbage": websocketfake.Garbage(), "an unknown opcode": {0x83, 0}, "a reserved bit": {0xc1, 0}, "a fragmented ping": {0x09, 0},
		"a masked frame": {0x81, 0x81, 1, 2, 3, 4, 5}, "a continuation of nothing": {0x80, 0}, "a close code that is none": {0x88, 2, 0x03, 0xee},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				b := w.connected()
				w.fake.Raw(bot, raw)
				synctest.Wait()
				w.fake.Cut(bot)
				if err := b.Wait(); channel.Classify(err).Class != channel.Transient || err == nil {
					t.Errorf("got %v, want a transient end", err)
				}
				w.NoSecret(b)
			})
		})
	}
}
