package eventid_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/internal/eventid"
)

func TestEvent(t *testing.T) {
	t.Run("an id gives back its seq", func(t *testing.T) {
		for _, seq := range []int64{1, 2, 31, 32, 1 << 40, math.MaxInt64} {
			id := eventid.Event(seq)
			if len(id) != len("evt_")+13 || id != strings.ToLower(id) {
				t.Errorf("seq %d: got %q, want evt_ and 13 lower-case characters", seq, id)
			}
			if got, ok := eventid.Seq(id); !ok || got != seq {
				t.Errorf("%s: got %d, %v, want %d", id, got, ok, seq)
			}
		}
	})

	t.Run("ids sort as their seqs do", func(t *testing.T) {
		var ids []string
		for seq := int64(1); seq < 1<<50; seq = seq*3 + 1 {
			ids = append(ids, eventid.Event(seq))
		}
		if !slices.IsSorted(ids) {
			t.Errorf("got %v, want them sorted", ids)
		}
	})

	t.Run("what is no id of ours is refused", func(t *testing.T) {
		good := eventid.Event(77)
		for _, id := range []string{
			"", "evt_", good[4:], "EVT_" + good[4:], good + "0", good[:16], "msg_" + good[4:], strings.ToUpper(good), "evt_zzzzzzzzzzzzz",
			"evt_0000000000001", // bits beyond the last byte: a second spelling of seq 0
			eventid.Event(0), eventid.Event(-1),
		} {
			if seq, ok := eventid.Seq(id); ok {
				t.Errorf("%q: got seq %d, want a refusal", id, seq)
			}
		}
	})
}

func TestWebhook(t *testing.T) {
	t.Run("a webhook id gives back its event's seq and is never the same", func(t *testing.T) {
		seen := map[string]bool{}
		for range 1000 {
			id := eventid.NewWebhook(1<<47 + 5)
			if len(id) != len("msg_")+26 || seen[id] {
				t.Fatalf("got %q, want msg_ and 26 characters not seen before", id)
			}
			seen[id] = true
			if seq, ok := eventid.WebhookSeq(id); !ok || seq != 1<<47+5 {
				t.Fatalf("%s: got %d, %v, want %d", id, seq, ok, int64(1<<47+5))
			}
		}
	})

	t.Run("what is no webhook id is refused", func(t *testing.T) {
		good := eventid.NewWebhook(9)
		for _, id := range []string{"", "msg_", good[:29], good + "0", "evt_" + good[4:], strings.ToUpper(good), eventid.NewWebhook(0)} {
			if seq, ok := eventid.WebhookSeq(id); ok {
				t.Errorf("%q: got seq %d, want a refusal", id, seq)
			}
		}
	})
}

func TestMessage(t *testing.T) {
	t.Run("ids are never the same and sort by their time", func(t *testing.T) {
		at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
		var ids []string
		for n := range 1000 {
			id := eventid.NewMessage(at.Add(time.Duration(n) * time.Millisecond))
			if len(id) != len("out_")+26 || id != strings.ToLower(id) {
				t.Fatalf("got %q, want out_ and 26 lower-case characters", id)
			}
			ids = append(ids, id)
		}
		if !slices.IsSorted(ids) {
			t.Errorf("got %v, want them sorted", ids)
		}
		if a, b := eventid.NewMessage(at), eventid.NewMessage(at); a == b {
			t.Errorf("got %s twice, want two ids", a)
		}
	})
	t.Run("one is told from any other word", func(t *testing.T) {
		id := eventid.NewMessage(time.Now())
		for word, want := range map[string]bool{
			id: true, "": false, id[1:]: false, id + "0": false, strings.ToUpper(id): false, "out_1": false, "msg_" + id[4:]: false, eventid.Event(1): false,
		} {
			if got := eventid.IsMessage(word); got != want {
				t.Errorf("%q: got %v, want %v", word, got, want)
			}
		}
	})
	t.Run("a clock before 1970 makes an id, too", func(t *testing.T) {
		if id := eventid.NewMessage(time.Time{}); !strings.HasPrefix(id, "out_000000000") {
			t.Errorf("got %s, want one that begins with zeros", id)
		}
	})
}

func FuzzSeq(f *testing.F) {
	f.Add(eventid.Event(1))
	f.Add(eventid.NewWebhook(1))
	f.Fuzz(func(t *testing.T, id string) {
		if seq, ok := eventid.Seq(id); ok && eventid.Event(seq) != id {
			t.Errorf("%q: got seq %d, which is written %q", id, seq, eventid.Event(seq))
		}
		if seq, ok := eventid.WebhookSeq(id); ok && seq <= 0 {
			t.Errorf("%q: got seq %d, want a positive one", id, seq)
		}
	})
}
