package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/internal/eventid"
)

// answered is the mark of a delivery that was answered with n messages.
func answered(t channel.Term, d delivery.Item, n int) delivery.Mark {
	m := delivered(t, d.Seq)
	for i := range n {
		r := delivery.Reply{Message: letter(0).Message, Key: fmt.Sprintf("%s#%d", d.WebhookID, i+1), ExpiresIn: time.Minute}
		r.ID, r.Text, r.Installation = eventid.NewMessage(time.Now()), fmt.Sprint("answer ", i+1), d.Installation
		m.Replies = append(m.Replies, r)
	}
	return m
}

// answers are the messages that answer an event, the oldest first.
func (w *world) answers(seq int64) []admin.Message {
	w.Helper()
	all, err := w.s.Messages(w.ctx, admin.MessageQuery{Event: eventid.Event(seq)})
	w.must(err)
	slices.Reverse(all)
	return all
}

func (r *runner) replies(t *testing.T) {
	r.write(t, "what a program answered is stored with the mark, once", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2")
		first, second := w.pending(s, "i")[0], w.pending(s, "i")[1]
		mark := answered(term, first, 2)
		w.must(w.do(func() error { _, err := s.Mark(w.ctx, []delivery.Mark{mark, answered(term, second, 0)}); return err }))
		got := w.answers(first.Seq)
		want(w, "replies", len(got), 2)
		want(w, "replies to the other", len(w.answers(second.Seq)), 0)
		for n, m := range got {
			sent := mark.Replies[n]
			whole, err := s.Message(w.ctx, m.ID)
			w.must(err)
			want(w, "id", m.ID, sent.ID)
			want(w, "content", fmt.Sprint(whole.Text, whole.Format, string(whole.Native)), fmt.Sprint(sent.Text, sent.Format, string(sent.Native)))
			want(w, "key", m.IdempotencyKey, fmt.Sprintf("%s#%d", first.WebhookID, n+1))
			want(w, "whither", fmt.Sprint(m.Installation, m.Op, m.Conversation, m.Thread, m.MessageID), fmt.Sprint("i", "send", "C1", "T1", "M1"))
			want(w, "event", m.Event, eventid.Event(first.Seq))
			want(w, "state", m.State, "queued")
			want(w, "created", m.CreatedAt.Equal(w.clock.Now()), true)
			want(w, "expires", m.ExpiresAt.Sub(m.CreatedAt), time.Minute)
		}
		waiting := w.outgoing("i")
		want(w, "messages that wait", len(waiting), 2)
		_, err := s.BeginSending(w.ctx, term, waiting[0].Seq)
		w.must(err)
	})

	r.promise(t, "a mark that does not count stores no answer", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		item := w.pending(s, "i")[0]
		for name, stale := range staleTerms(term) {
			if name == "run" { // owner and epoch fence it
				continue
			}
			if err := w.mark(s, answered(stale, item, 1)); !errors.Is(err, delivery.ErrMarkFenced) {
				w.Errorf("%s: got %v, want ErrMarkFenced", name, err)
			}
		}
		want(w, "replies", len(w.answers(item.Seq)), 0)
		w.must(w.mark(s, delivered(term, item.Seq)))
		if err := w.mark(s, answered(term, item, 1)); !errors.Is(err, delivery.ErrMarkFenced) {
			w.Errorf("delivered before: got %v, want ErrMarkFenced", err)
		}
		want(w, "replies", len(w.answers(item.Seq)), 0)
	})

	r.promise(t, "what was answered before is not stored again when the event is replayed", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		item := w.pending(s, "i")[0]
		w.must(w.mark(s, answered(term, item, 1)))
		_, err := s.RedeliverDeliveries(w.ctx, []string{item.WebhookID})
		w.must(err)
		w.must(w.mark(s, answered(term, w.pending(s, "i")[0], 2)))
		got := w.answers(item.Seq)
		want(w, "replies", len(got), 2)
		want(w, "keys", got[0].IdempotencyKey+" "+got[1].IdempotencyKey, item.WebhookID+"#1 "+item.WebhookID+"#2")
	})

	r.promise(t, "what can never be sent is refused from the beginning, and waits for nobody", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		item := w.pending(s, "i")[0]
		mark := answered(term, item, 2)
		mark.Replies[0].Refused, mark.Replies[0].ExpiresIn = "it cannot send", 0
		w.must(w.mark(s, mark))
		got := w.answers(item.Seq)
		want(w, "state", got[0].State, "refused")
		want(w, "reason", got[0].LastError, "it cannot send")
		want(w, "ended", got[0].EndedAt.Equal(w.clock.Now()), true)
		want(w, "expiry that was left out", got[0].ExpiresAt.Sub(got[0].CreatedAt), outbound.DefaultExpiry)
		want(w, "messages that wait", len(w.outgoing("i")), 1)
	})

	r.promise(t, "an answer of what rides stands under its carrier's lease, and goes where that goes", func(w *world) {
		s := w.node()
		term := w.hold("i")
		rider := w.put("r", via("i"))
		b := batch(term, "1")
		b.Events[0].Event.Installation = "r"
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		item := w.pending(s, "i")[0]
		w.must(w.mark(s, answered(term, item, 1)))
		want(w, "who speaks", w.outgoing("i")[0].Installation, "r")
		w.put("other")
		rider.Via = "other"
		_, err = s.PutInstallation(w.ctx, rider, rider.Revision)
		w.must(err)
		want(w, "messages of the old carrier", len(w.outgoing("i")), 0)
		want(w, "messages of the new carrier", len(w.outgoing("other")), 1)
	})

	r.promise(t, "an answer of an installation that was removed is refused, and its event delivered", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		item := w.pending(s, "i")[0]
		w.must(s.RemoveInstallation(w.ctx, "i"))
		w.must(w.mark(s, answered(term, item, 1)))
		got := w.answers(item.Seq)
		want(w, "replies", len(got), 1)
		want(w, "state", got[0].State, "refused")
		want(w, "reason", got[0].LastError, outbound.Orphaned)
		want(w, "waiting", len(w.pending(s, "i")), 0)
	})

	r.promise(t, "a message that somebody posts names the event that it answers, too", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		seq := w.pending(s, "i")[0].Seq
		m := letter(1)
		m.Answers = seq
		want(w, "event", w.post(m).Event, eventid.Event(seq))
		want(w, "event of another", w.post(letter(2)).Event, "")
		want(w, "replies", len(w.answers(seq)), 1)
		_, err := s.Messages(w.ctx, admin.MessageQuery{Event: "evt_1"})
		if err == nil {
			w.Error("messages of no event's id: got no error, want one")
		}
	})
}
