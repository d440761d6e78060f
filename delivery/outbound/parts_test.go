package outbound

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
)

func TestParts(t *testing.T) {
	text := func(s, format string) func(*fakeRow) {
		return func(r *fakeRow) { r.Text, r.Format = s, format }
	}

	bubble(t, "a text is written as the platform reads it", func(w *world) {
		w.platform.writes = channel.Writing{Markup: "telegram"}
		w.live("a")
		w.post("a", "C1", text("*a* < b", ""))
		w.post("a", "C1", text("*a* < b", channel.Markdown))
		w.post("a", "C1", text("*a* < b", channel.Markdown), func(r *fakeRow) { r.Op, r.MessageID = "react", "M" })
		time.Sleep(time.Minute)
		for id, want := range map[string]string{"out_1": "*a* &lt; b", "out_2": "<i>a</i> &lt; b", "out_3": "*a* < b"} {
			if got := w.platform.text(id); got != want {
				t.Errorf("%s: got %q, want %q", id, got, want)
			}
		}
	})

	bubble(t, "what is too long is sent in parts, in front of what comes behind it, under one receipt", func(w *world) {
		w.platform.writes = narrow
		w.live("a")
		seq := w.post("a", "C1", text(long, ""))
		w.post("a", "C1")
		time.Sleep(time.Minute)
		if got, want := w.platform.got(), []string{"out_1", "out_1.2", "out_1.3", "out_2"}; !slices.Equal(got, want) {
			t.Errorf("got %v taken, want %v", got, want)
		}
		w.is(seq, Sent, "")
		var receipt Receipt
		if err := json.Unmarshal([]byte(w.box.row(seq).receipt), &receipt); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(receipt.MessageID, receipt.Parts); got != "m-out_1[{m-out_1 [] []} {m-out_1.2 [] []} {m-out_1.3 [] []}]" {
			t.Errorf("receipt: got %s, want one with three parts", got)
		}
	})

	bubble(t, "a part that is refused ends the message, with those before it in its receipt", func(w *world) {
		w.platform.writes = narrow
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			if m.ID == "out_1.2" {
				return 0, false, channel.Refused(errors.New("no"))
			}
			return 0, true, nil
		}
		w.live("a")
		seq := w.post("a", "C1", text(long, ""))
		time.Sleep(time.Minute)
		w.is(seq, Refused, "part 2 of 3: no")
		if got := w.box.row(seq).receipt; strings.Count(got, "m-out_1") != 2 {
			t.Errorf("receipt: got %s, want the first part", got)
		}
		if got := w.platform.got(); len(got) != 1 {
			t.Errorf("got %v taken, want the first part alone", got)
		}
	})

	bubble(t, "a part whose answer is lost is unknown, and nothing behind it is sent", func(w *world) {
		w.platform.writes = narrow
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			if m.ID == "out_1.2" {
				return 0, true, errors.New("lost")
			}
			return 0, true, nil
		}
		w.live("a")
		seq := w.post("a", "C1", text(long, ""))
		time.Sleep(time.Minute)
		w.is(seq, Unknown, "part 2 of 3: lost")
		if got := w.platform.got(); len(got) != 2 {
			t.Errorf("got %v taken, want two parts", got)
		}
	})

	bubble(t, "a part is tried again by itself, and the parts stay as they were fixed", func(w *world) {
		w.platform.writes = narrow
		w.platform.answer = func(m channel.Message, n int) (time.Duration, bool, error) {
			w.platform.writes = channel.Writing{Limit: 150} // as after a change of the config
			if m.ID == "out_1.2" && n < 2 {
				return 0, false, channel.NotSent(errors.New("busy"))
			}
			return 0, true, nil
		}
		w.live("a")
		seq := w.post("a", "C1", text(long, ""))
		time.Sleep(time.Minute)
		w.is(seq, Sent, "")
		if got, want := w.platform.got(), []string{"out_1", "out_1.2", "out_1.3"}; !slices.Equal(got, want) {
			t.Errorf("got %v taken, want %v", got, want)
		}
		if got := w.box.row(seq).attempts; got != 3 {
			t.Errorf("got %d attempts, want those of what failed, and the last", got)
		}
	})

	bubble(t, "what would have to be split and cannot is refused, with the limit", func(w *world) {
		w.platform.writes = narrow
		w.live("a")
		edit := w.post("a", "C1", text(long, ""), func(r *fakeRow) { r.Op, r.MessageID = "edit", "M" })
		native := w.post("a", "C1", text(long, ""), func(r *fakeRow) { r.Native = []byte("{}") })
		book := w.post("a", "C1", text(strings.Repeat(long, 40), ""))
		time.Sleep(time.Minute)
		w.is(edit, Refused, "the text has more than the 100 units of UTF-16 of one message, and an edit is one; shorten it")
		w.is(native, Refused, "the text has more than the 100 units of UTF-16 of one message, and what has native is one; shorten it")
		w.is(book, Refused, "the text takes 120 messages of 100 units of UTF-16, and at most 100 are sent; shorten it")
		if got := w.platform.got(); len(got) > 0 {
			t.Errorf("got %v taken, want nothing", got)
		}
	})

	bubble(t, "what was sent in part when its time is over is refused, and says so", func(w *world) {
		w.platform.writes = narrow
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			if m.ID != "out_1" {
				return 0, false, channel.NotSent(errors.New("busy"))
			}
			return 0, true, nil
		}
		w.live("a")
		seq := w.post("a", "C1", text(long, ""))
		time.Sleep(DefaultExpiry + time.Minute)
		w.is(seq, Refused, Partly)
	})
}
