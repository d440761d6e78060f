package outbound

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

const address = "https://platform.example/planted"

func TestFollowUps(t *testing.T) {
	opens := func(o *Options) {
		o.FollowUp = func(context.Context, string, string, []byte) (channel.Secret, error) {
			return channel.NewSecret(address), nil
		}
	}
	follows := func(r *fakeRow) { r.event, r.sealed = "e1", []byte("sealed of e1") }
	// heard makes the platform note where messages went.
	heard := func(w *world, answer error) *[]string {
		var mu sync.Mutex // guards to until the mailer rests
		var to []string
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			mu.Lock()
			defer mu.Unlock()
			to = append(to, m.ID+" "+m.FollowUp.Reveal())
			return 0, answer == nil, answer
		}
		return &to
	}

	bubble(t, "what answers an event goes to its address, other messages the ordinary way", func(w *world) {
		to := heard(w, nil)
		w.live("a")
		w.post("a", "C1", follows)
		w.post("a", "C2")
		synctest.Wait()
		want(w, "sent", len(*to), 2)
		for _, got := range *to {
			if got != "out_1 "+address && got != "out_2 " {
				w.Errorf("got %q, want the first to go to the address", got)
			}
		}
	}, opens)

	bubble(t, "it is opened as its event's, and one that cannot be opened is not waited for", func(w *world) {
		to := heard(w, nil)
		w.live("a")
		seq := w.post("a", "C1", follows)
		synctest.Wait()
		w.is(seq, Sent, "")
		want(w, "sent", fmt.Sprint(*to), "[out_1 ]")
	}, func(o *Options) {
		o.FollowUp = func(_ context.Context, installation, event string, sealed []byte) (channel.Secret, error) {
			if got := fmt.Sprint(installation, " ", event, " ", string(sealed)); got != "a e1 sealed of e1" {
				panic(got)
			}
			return channel.Secret{}, errors.New("the key is lost")
		}
	})

	bubble(t, "what the platform says of a message shows no address", func(w *world) {
		heard(w, channel.Refused(errors.New("gone: "+address)))
		w.live("a")
		seq := w.post("a", "C1", follows)
		synctest.Wait()
		w.is(seq, Refused, "gone: [redacted]")
	}, opens)

	t.Run("nor does its receipt", func(t *testing.T) {
		e := hide(End{State: Sent, Receipt: []byte(`{"message_id":"1","raw":{"to":"https:\/\/platform.example/planted","n":1.50}}`)}, channel.NewSecret(address))
		if got, want := string(e.Receipt), `{"message_id":"1","raw":{"to":null,"n":1.50}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
