package outbound

import (
	"testing"
	"time"

	"leasehold/channel"
)

func TestEdits(t *testing.T) {
	edit := func(of string) func(*fakeRow) {
		return func(r *fakeRow) { r.Op, r.MessageID = "edit", of }
	}

	bubble(t, "of those of one message that wait, the newest alone is sent, in its place", func(w *world) {
		w.box.post("a", "C1", edit("M1"))
		w.box.post("a", "C1", edit("M2"))
		w.box.post("a", "C1")
		w.box.post("a", "C1", edit("M1"))
		w.box.post("a", "C1", edit("M1"))
		w.box.post("a", "C1")
		other := w.box.post("a", "C2", edit("M1")) // another conversation's M1 is another message
		w.live("a")
		time.Sleep(time.Minute)
		got := w.platform.got()
		at := map[string]int{}
		for n, id := range got {
			at[id] = n + 1
		}
		want(w, "messages sent", len(got), 5)
		if at["out_2"] == 0 || at["out_2"] > at["out_3"] || at["out_3"] > at["out_5"] || at["out_5"] > at["out_6"] {
			t.Errorf("got %q, want the newest edits in the order of posting", got)
		}
		w.is(1, Expired, superseded)
		w.is(4, Expired, superseded)
		w.is(5, Sent, "")
		w.is(other, Sent, "")
	})

	bubble(t, "one that is on its way is not called back", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) { return 2 * time.Second, true, nil }
		w.live("a")
		w.post("a", "C1", edit("M1"))
		time.Sleep(time.Second)
		w.post("a", "C1", edit("M1"))
		w.post("a", "C1", edit("M1"))
		time.Sleep(time.Minute)
		w.is(1, Sent, "")
		w.is(2, Expired, superseded)
		w.is(3, Sent, "")
	})
}
