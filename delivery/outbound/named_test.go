package outbound

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/internal/eventid"
)

func TestAMessageMayNameOneOfOurs(t *testing.T) {
	of := func(op, id string) func(*fakeRow) {
		return func(r *fakeRow) { r.Op, r.MessageID = op, id }
	}
	// heard notes what each message came about.
	heard := func(w *world, answer func(m channel.Message) error) func() []string {
		var mu sync.Mutex
		var all []string
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			if err := answer(m); err != nil {
				return 0, false, err
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m.Op+" "+m.MessageID)
			return 0, true, nil
		}
		return func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
	}
	taken := func(channel.Message) error { return nil }

	bubble(t, "what waits behind it is about the platform's id, once there is one", func(w *world) {
		tries := 0
		got := heard(w, func(m channel.Message) error {
			if m.Op == "send" {
				if tries++; tries < 3 {
					return channel.NotSent(errors.New("not now"))
				}
			}
			return nil
		})
		w.box.post("a", "C1")
		w.box.post("a", "C1", of("react", "out_1"))
		w.box.post("a", "C1", of("edit", "M7"))
		w.live("a")
		time.Sleep(time.Minute)
		if want := []string{"send ", "react m-out_1", "edit M7"}; !slices.Equal(got(), want) {
			t.Errorf("got %q, want %q", got(), want)
		}
	})

	bubble(t, "edits of it become one", func(w *world) {
		got := heard(w, taken)
		w.box.post("a", "C1")
		for range 3 {
			w.box.post("a", "C1", of("edit", "out_1"))
		}
		w.live("a")
		time.Sleep(time.Minute)
		if want := []string{"send ", "edit m-out_1"}; !slices.Equal(got(), want) {
			t.Errorf("got %q, want %q", got(), want)
		}
		w.is(2, Expired, superseded)
		w.is(3, Expired, superseded)
		w.is(4, Sent, "")
	})

	bubble(t, "what is about one that was never sent, or not yet, is refused with the reason", func(w *world) {
		got := heard(w, func(m channel.Message) error {
			switch m.Text {
			case "no":
				return channel.Refused(errors.New("not here"))
			case "lost":
				return errors.New("cut")
			}
			return nil
		})
		text := func(s string) func(*fakeRow) { return func(r *fakeRow) { r.Text = s } }
		gone := eventid.NewMessage(time.Now())
		w.box.post("a", "C1", text("no"))
		w.box.post("a", "C1", of("edit", "out_1"))
		w.box.post("a", "C1", text("lost"))
		w.box.post("a", "C1", of("edit", "out_3"))
		w.box.post("a", "C1", of("delete", gone))
		w.live("a")
		w.box.post("b", "C1") // nobody holds it
		w.box.post("a", "C1", of("delete", "out_6"))
		time.Sleep(time.Minute)
		w.is(2, Refused, "it is about message out_1, which was never sent: it is refused")
		w.is(4, Refused, "it is about message out_3, of which nobody knows whether it was sent")
		w.is(5, Refused, "it is about message "+gone+", which is not one of this installation, or past its retention")
		if want := []string{"delete out_6"}; !slices.Equal(got(), want) { // a platform's id, for all that is known
			t.Errorf("got %q, want %q", got(), want)
		}
	})

	t.Run("one without an id of the platform is out of reach, and so is one on its way", func(t *testing.T) {
		for want, n := range map[string]Named{
			"it is about message out_1, of which the platform gave no id when it took it": {State: Sent, Receipt: []byte(`{"raw":{}}`)},
			"it is about message out_1, which was not sent yet":                           {State: Sending},
			"it is about message out_1, which was never sent: it is expired":              {State: Expired},
			"it is about message out_1, of which only a part was sent: it is refused":     {State: Refused, Receipt: []byte(`{"message_id":"m","parts":[{"message_id":"m"}]}`)},
		} {
			if id, why := n.On("out_1"); id != "" || why != want {
				t.Errorf("got %q and %q, want %q", id, why, want)
			}
		}
	})
}
