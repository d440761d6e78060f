package sse_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/sse/ssefake"
)

func TestEventsAreStoredInOrder(t *testing.T) {
	for name, o := range map[string]ssefake.Options{
		"line feeds": {}, "carriage returns": {Newline: "\r"}, "both": {Newline: "\r\n"},
		"byte by byte": {Split: 1, Newline: "\r\n"}, "in pieces": {Split: 7, Newline: "\r"}, "with a token": {Token: func(string) string { return token }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, o, func(w *world) {
				b := w.connected()
				w.fake.Push(bot, 300)
				w.fake.PushEvent(bot, ssefake.Event{ID: "ä", Data: "{\n\"text\": \"häuser 🏠\"\n}"})
				synctest.Wait()
				if got := w.Kept(); len(got) != 301 || got[0] != "a-000001" || got[299] != "a-000300" || !slices.IsSorted(got[:300]) {
					t.Errorf("got %d events, %q first, want 301 in order", len(got), got[0])
				}
				all := w.Memory.Events()
				first, last := all[0], all[300]
				if first.Type != "message" || first.Text != "event 1 of a" || first.Conversation.ID != "c0" || first.Sender.ID != "u0" || !first.Time.Equal(time.Now()) {
					t.Errorf("got %+v, want the fields that the pointers name", first)
				}
				if !strings.Contains(string(first.Raw), `"seq":1`) || first.Payload != nil {
					t.Errorf("got raw %s, want the platform's JSON", first.Raw)
				}
				if last.ID != "ä" || last.Text != "häuser 🏠" || string(last.Raw) != "{\n\"text\": \"häuser 🏠\"\n}" {
					t.Errorf("got %+v, want the text over three lines", last)
				}
				w.Stop(b, channel.ErrDraining)
				w.NoViolations()
			})
		})
	}
}

func TestWhatAnEventIsMadeOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		event  ssefake.Event
		config map[string]any
		check  func(e channel.Event) bool
	}{
		{"its name is its type", ssefake.Event{ID: "1", Name: "deploy.done", Data: `{"text":"x"}`}, nil, func(e channel.Event) bool {
			return e.Type == "deploy.done" && e.Text == "x" && e.ID == "1"
		}},
		{"a text makes it a message", ssefake.Event{ID: "1", Data: `{"text":"x"}`}, nil, func(e channel.Event) bool { return e.Type == "message" }},
		{"without either it is raw", ssefake.Event{ID: "1", Data: `{"x":1}`}, nil, func(e channel.Event) bool { return e.Type == "raw" && string(e.Raw) == `{"x":1}` }},
		{"a pointer to the type comes first", ssefake.Event{ID: "1", Name: "n", Data: `{"t":"k","text":"x"}`}, map[string]any{"type": "/t", "text": "/text"}, func(e channel.Event) bool {
			return e.Type == "k"
		}},
		{"a pointer that finds none", ssefake.Event{ID: "1", Name: "n", Data: `{"text":"x"}`}, map[string]any{"type": "/t", "text": "/text"}, func(e channel.Event) bool {
			return e.Type == "raw" && e.Text == "x"
		}},
		{"a name too long to be a type", ssefake.Event{ID: "1", Name: strings.Repeat("n", 65), Data: `{}`}, nil, func(e channel.Event) bool { return e.Type == "raw" }},
		{"a pointer to the id comes before the id line", ssefake.Event{ID: "1", Data: `{"id":7}`}, map[string]any{"id": "/id"}, func(e channel.Event) bool { return e.ID == "7" }},
		{"an id line is none where a pointer is set", ssefake.Event{ID: "1", Data: `{}`}, map[string]any{"id": "/id"}, func(e channel.Event) bool { return e.ID != "1" && e.ID != "" }},
		{"an id line is none there, whatever the data is", ssefake.Event{ID: "1", Data: "no JSON"}, map[string]any{"id": "/id"}, func(e channel.Event) bool { return e.ID != "1" && e.ID != "" }},
		{"text that is no JSON", ssefake.Event{ID: "1", Name: "line", Data: "hello\nthere"}, nil, func(e channel.Event) bool {
			return e.Type == "line" && e.Raw == nil && string(e.Payload) == "hello\nthere" && e.ContentType == "text/plain; charset=utf-8"
		}},
		{"invalid UTF-8 is replaced, as the standard says", ssefake.Event{ID: "1", Data: "{\"text\":\"a\xffb\"}"}, nil, func(e channel.Event) bool {
			return e.Text == "a\uFFFDb" && string(e.Raw) == "{\"text\":\"a\uFFFDb\"}"
		}},
		{"no data at all", ssefake.Event{ID: "1", Name: "tick", Data: ""}, nil, func(e channel.Event) bool { return e.Type == "tick" && e.ID == "1" && e.Raw == nil }},
		{"an id of four kilobytes", ssefake.Event{ID: strings.Repeat("i", 4096), Data: `{}`}, nil, func(e channel.Event) bool { return strings.HasPrefix(e.ID, "sha256:") && len(e.ID) < 80 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				w.Config["pointers"] = map[string]any{"text": "/text"}
				if c.config != nil {
					w.Config["pointers"] = c.config
				}
				b := w.connected()
				w.fake.PushEvent(bot, c.event)
				w.fake.Push(bot, 1)
				synctest.Wait()
				if all := w.Memory.Events(); len(all) != 2 || !c.check(all[0]) {
					t.Fatalf("got %+v, want another first event, and the next one", all)
				}
				w.Stop(b, channel.ErrDraining)
			})
		})
	}
}

func TestEventsAreTakenByTheirNames(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		w.Config["events"] = []string{"message", "alarm"}
		b := w.connected()
		for _, e := range []ssefake.Event{
			{ID: "1", Data: "{}"}, {ID: "2", Name: "alarm", Data: "{}"}, {ID: "3", Name: "noise", Data: "{}"}, {ID: "4", Name: "message", Data: "{}"}, {ID: "5", Name: "noise", Data: "{}"},
		} {
			w.fake.PushEvent(bot, e)
		}
		synctest.Wait()
		if got := w.Kept(); !slices.Equal(got, []string{"1", "2", "4"}) {
			t.Errorf("got %q, want those of the two names", got)
		}
		w.Stop(b, channel.ErrDraining)
		b = w.connected()
		if got := w.lastConnection().After; got != "5" {
			t.Errorf("got asked for what follows %q, want 5: what is not taken is done with, too", got)
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
	})
}

func TestAnEventWithoutAnIDMayRepeat(t *testing.T) {
	bubble(t, ssefake.Options{NoIDs: true}, func(w *world) {
		w.fake.PushEvent(bot, ssefake.Event{Data: "same"})
		w.fake.PushEvent(bot, ssefake.Event{Data: "same"})
		b := w.connected()
		w.Stop(b, channel.ErrDraining)
		b = w.connected()
		if got := w.Kept(); len(got) != 4 {
			t.Errorf("got %q, want every one its own event, over connections, too", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestAPositionThatIsLeftFromAnEarlierEventIsNoID(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		b := w.connected()
		w.fake.PushEvent(bot, ssefake.Event{ID: "1", Data: "a"})
		w.fake.PushEvent(bot, ssefake.Event{Data: "b"})
		w.fake.PushEvent(bot, ssefake.Event{Data: "c"})
		synctest.Wait()
		if got := w.Kept(); len(got) != 3 {
			t.Errorf("got %q, want three events", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestAnOversizedEventIsDroppedAndTold(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		w.Config["max_size"] = 10_000
		b := w.connected()
		w.fake.PushEvent(bot, ssefake.Event{ID: "big", Data: strings.Repeat("x", 2<<20)})
		w.fake.PushEvent(bot, ssefake.Event{ID: "fits", Data: strings.Repeat("x", 10_000)})
		w.fake.PushEvent(bot, ssefake.Event{ID: "one too many", Data: strings.Repeat("x", 10_001)})
		synctest.Wait()
		if got := w.Kept(); !slices.Equal(got, []string{"fits"}) {
			t.Errorf("got %q, want the one that fits to the byte", got)
		}
		if n := b.Notices(); len(n) != 2 || n[0].Code != "event_too_large" || n[0].Words != "an event of 2097152 bytes was dropped; max_size is 10000" {
			t.Errorf("got notices %+v, want two", n)
		}
		w.Stop(b, channel.ErrDraining)
		b = w.connected()
		if got := w.lastConnection().After; got != "one too many" {
			t.Errorf("got asked for what follows %q, want the last one: a dropped event is not asked for again", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestALineWithoutEndEndsTheConnection(t *testing.T) {
	for name, begin := range map[string]string{"data": "data: ", "a comment": ":"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				b := w.connected()
				w.fake.Say(bot, begin+strings.Repeat("x", 17<<20))
				w.WantExit(b, channel.Transient, "frame_too_large")
				if got := w.Kept(); len(got) != 0 {
					t.Errorf("got %q kept, want nothing", got)
				}
			})
		})
	}
}

func TestAnEventThatEndsEarlyIsNone(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"in good order": func(w *world) { w.fake.End(bot) }, "half-closed": func(w *world) { w.Net.HalfClose() }, "reset": func(w *world) { w.Net.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				b := w.connected()
				w.fake.Say(bot, "id: 1\ndata: whole\n\nid: 2\ndata: half\n")
				synctest.Wait()
				end(w)
				if err := b.Wait(); err == nil {
					t.Error("got no error, want one")
				}
				if got := w.Kept(); !slices.Equal(got, []string{"1"}) {
					t.Errorf("got %q kept, want the whole one only", got)
				}
				if got := string(w.Memory.Cursor()); !strings.Contains(got, `"at":"1"`) {
					t.Errorf("got cursor %s, want it behind the whole one", got)
				}
			})
		})
	}
}

func TestWhatIsNoChunkEndsTheConnection(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		b := w.connected()
		w.fake.Raw(bot, ssefake.Garbage())
		w.WantExit(b, channel.Transient, "broken")
	})
}

func TestASlowDiskHoldsUpNobodyElse(t *testing.T) {
	bubble(t, ssefake.Options{Patience: time.Hour}, func(w *world) {
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
		if got := w.Kept(); len(got) != 5000 {
			t.Errorf("got %d kept, want all 5000", len(got))
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestWhatWaitsForTheDiskIsBounded(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		b := w.connected()
		release := w.Memory.Hold()
		for range 50 {
			w.fake.PushEvent(bot, ssefake.Event{Data: strings.Repeat("x", 900<<10)})
		}
		synctest.Wait()
		if got := w.lastConnection().Sent; got > 8 { // 4 MiB and what the buffers hold
			t.Errorf("got %d events of 900 kB taken while the disk hangs, want at most 8", got)
		}
		release()
		w.Stop(b, channel.ErrDraining)
	})
}
