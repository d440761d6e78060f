package outbound

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/internal/fault"
)

// poster keeps what is posted.
type poster struct {
	posted []Message
	err    error
	wait   bool // until the context ends
}

func (p *poster) Post(ctx context.Context, m Message) error {
	if p.wait {
		<-ctx.Done()
		return ctx.Err()
	}
	p.posted = append(p.posted, m)
	return p.err
}

func relayTo(p Poster) Relay {
	return Relay{Poster: p, Installation: "ops", Conversation: "C02", Thread: "T1", Text: "{installation.id}: {text}", ExpiresIn: time.Hour}
}

func attempt(installation, conversation, text string, self bool) delivery.Delivery {
	return delivery.Delivery{
		ID: "msg_1", Type: "message", Installation: installation,
		Envelope: fmt.Appendf(nil, `{"type":"message","data":{"installation":{"id":%q},"conversation":{"id":%q},"sender":{"id":"U1","bot":false,"self":%v},"text":%q}}`, installation, conversation, self, text),
	}
}

func TestRelay(t *testing.T) {
	t.Run("an event is posted as a message whose key is the delivery's id", func(t *testing.T) {
		p := &poster{}
		if r := relayTo(p).Deliver(t.Context(), attempt("acme", "C02", "it burns", false)); r.Outcome != delivery.Taken {
			t.Fatalf("got %+v, want it taken", r)
		}
		m := p.posted[0]
		if !strings.HasPrefix(m.ID, "out_") {
			t.Errorf("id: got %q, want one of ours", m.ID)
		}
		m.ID = ""
		want := Message{
			Message:        channel.Message{Installation: "ops", Op: "send", Conversation: "C02", Thread: "T1", Text: "acme: it burns"},
			IdempotencyKey: "msg_1", ExpiresIn: time.Hour,
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("got %+v, want %+v", m, want)
		}
	})

	t.Run("what would go in circles is not taken, and refused if it was", func(t *testing.T) {
		p := &poster{}
		for _, c := range []struct {
			installation, conversation string
			self, takes                bool
		}{
			{"acme", "C02", false, true}, // another account's conversation of that name
			{"ops", "C01", false, true},
			{"ops", "C02", false, false},
			{"acme", "C01", true, false},
		} {
			e := channel.Event{Conversation: channel.Ref{ID: c.conversation}, Sender: channel.Ref{Self: c.self}}
			if got := relayTo(p).Takes(c.installation, &e); got != c.takes {
				t.Errorf("%+v: got %v, want %v", c, got, c.takes)
			}
			r := relayTo(p).Deliver(t.Context(), attempt(c.installation, c.conversation, "x", c.self))
			if taken := r.Outcome == delivery.Taken; taken != c.takes || !taken && (r.Outcome != delivery.Refused || r.NextStep == "") {
				t.Errorf("%+v: got %+v, want it refused unless it is taken", c, r)
			}
		}
		if len(p.posted) != 2 {
			t.Errorf("got %d posted, want 2", len(p.posted))
		}
	})

	t.Run("an event that makes an empty text posts nothing", func(t *testing.T) {
		p := &poster{}
		r := relayTo(p)
		r.Text = "{text} "
		if got := r.Deliver(t.Context(), attempt("acme", "C1", "", false)); got.Outcome != delivery.Taken || len(p.posted) > 0 {
			t.Errorf("got %+v and %v posted, want it taken and nothing posted", got, p.posted)
		}
	})

	t.Run("a store that does not take it is a target that is down", func(t *testing.T) {
		for _, c := range []struct {
			err  error
			next string
		}{
			{errors.New("disk full"), "see leasehold status"},
			{fault.Errorf(fault.NotFound, "there is no installation ops"), "define the installation again, or remove the target"},
		} {
			r := relayTo(&poster{err: c.err}).Deliver(t.Context(), attempt("acme", "C1", "x", false))
			if r.Outcome != delivery.Down || r.Reason != c.err.Error() || r.NextStep != c.next {
				t.Errorf("got %+v, want down with %q", r, c.next)
			}
		}
	})

	t.Run("a call that is broken off is no attempt, one that takes too long is slow", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := relayTo(&poster{wait: true}).Deliver(ctx, attempt("acme", "C1", "x", false)); r.Outcome != delivery.Aborted {
			t.Errorf("got %+v, want it aborted", r)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if r := relayTo(&poster{wait: true}).Deliver(ctx, attempt("acme", "C1", "x", false)); r.Outcome != delivery.Slow {
			t.Errorf("got %+v, want it slow", r)
		}
	})

	t.Run("two that are made alike are equal, so a reload leaves the target alone", func(t *testing.T) {
		p := &poster{}
		if a, b := relayTo(p), relayTo(p); a != b {
			t.Errorf("got %+v and %+v different, want them equal", a, b)
		}
	})

	t.Run("a dispatcher stores no delivery of what a sink does not take", func(t *testing.T) {
		d, err := delivery.New(nil, []delivery.Target{{Name: "ops", Kind: "message", Sink: relayTo(&poster{})}}, delivery.Options{})
		if err != nil {
			t.Fatal(err)
		}
		term := channel.Term{Installation: "ops"}
		for conversation, want := range map[string]int{"C02": 0, "C01": 1} {
			if got := d.Targets(term, &channel.Event{Type: "message", Conversation: channel.Ref{ID: conversation}}); len(got) != want {
				t.Errorf("%s: got targets %v, want %d", conversation, got, want)
			}
		}
	})
}
