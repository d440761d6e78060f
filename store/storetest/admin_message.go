package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/internal/fault"
)

func (r *runner) messages(t *testing.T) {
	r.write(t, "a message is stored once, whole, and waits", func(w *world) {
		s := w.node()
		w.put("i")
		var got admin.Message
		w.must(w.do(func() (err error) { got, err = s.PutMessage(w.ctx, letter(1)); return err }))
		all, err := s.Messages(w.ctx, admin.MessageQuery{})
		w.must(err)
		want(w, "messages", len(all), 1)
		want(w, "text in a list", all[0].Text+string(all[0].Native), "")
		for _, m := range []admin.Message{got, w.is("state", "out_1", "queued")} {
			want(w, "seq", m.Seq, all[0].Seq)
			want(w, "installation", m.Installation, "i")
			want(w, "lease", m.Lease, "i")
			want(w, "what and where", m.Op+m.Conversation+m.Thread+m.MessageID, "sendC1T1M1")
			want(w, "text", m.Text, "text <1>")
			want(w, "format", m.Format, channel.Markdown)
			want(w, "native, to the byte", string(m.Native), `{ "n": 1.50 }`)
			want(w, "created", m.CreatedAt.Equal(w.clock.Now()), true)
			want(w, "expires", m.ExpiresAt.Equal(w.clock.Now().Add(15*time.Minute)), true)
			want(w, "ended", m.EndedAt.IsZero(), true)
			want(w, "receipt", m.Receipt == nil, true)
		}
	})

	r.write(t, "of two messages with one key the first counts, for each installation", func(w *world) {
		s := w.node()
		w.put("i")
		w.put("j")
		first := letter(1)
		first.IdempotencyKey = "key"
		w.post(first)
		w.clock.Step(time.Minute)
		second := letter(2)
		second.IdempotencyKey = "key"
		// It changes nothing, so there is no commit that could fail.
		got, err := s.PutMessage(w.ctx, second)
		w.must(err)
		want(w, "id", got.ID, "out_1")
		want(w, "text", got.Text, "text <1>")
		other := letter(3)
		other.Installation, other.IdempotencyKey = "j", "key"
		w.must(w.do(func() (err error) { got, err = s.PutMessage(w.ctx, other); return err }))
		want(w, "id with another installation", got.ID, "out_3")
		want(w, "id without a key", w.post(letter(4)).ID, "out_4")
		want(w, "id of another without a key", w.post(letter(5)).ID, "out_5")
		all, err := s.Messages(w.ctx, admin.MessageQuery{})
		w.must(err)
		want(w, "messages", len(all), 4)
	})

	r.promise(t, "a message of no installation is refused", func(w *world) {
		s := w.node()
		w.put("i")
		w.must(s.RemoveInstallation(w.ctx, "i"))
		_, err := s.PutMessage(w.ctx, letter(1))
		want(w, "of a removed one", fault.Of(err), fault.NotFound)
		nobody := letter(2)
		nobody.Installation = "nobody"
		_, err = s.PutMessage(w.ctx, nobody)
		want(w, "of none", fault.Of(err), fault.NotFound)
		_, err = s.Message(w.ctx, "out_1")
		want(w, "stored", fault.Of(err), fault.NotFound)
	})

	for _, q := range []struct {
		name  string
		query admin.MessageQuery
		want  []string
	}{
		{"newest first", admin.MessageQuery{}, []string{"out_5", "out_4", "out_3", "out_2", "out_1", "out_0"}},
		{"a page", admin.MessageQuery{Limit: 2}, []string{"out_5", "out_4"}},
		{"of one installation", admin.MessageQuery{Installation: "j"}, []string{"out_5", "out_3", "out_1"}},
		{"that are being sent", admin.MessageQuery{State: "sending"}, []string{"out_0"}},
		{"that wait", admin.MessageQuery{State: "queued", Installation: "i"}, []string{"out_4", "out_2"}},
		{"that were sent", admin.MessageQuery{State: "sent"}, nil},
	} {
		r.promise(t, "messages are listed: "+q.name, func(w *world) {
			s := w.node()
			term := w.hold("i")
			w.put("j")
			for n := range 6 {
				m := letter(n)
				m.Installation = []string{"i", "j"}[n%2]
				w.post(m)
			}
			_, err := s.BeginSending(w.ctx, term, w.outgoing("i")[0].Seq)
			w.must(err)
			got, err := s.Messages(w.ctx, q.query)
			w.must(err)
			var ids []string
			for _, m := range got {
				ids = append(ids, m.ID)
			}
			if !slices.Equal(ids, q.want) {
				w.Errorf("got %v, want %v", ids, q.want)
			}
		})
	}

	r.promise(t, "a list goes on before the last, and no state is guessed", func(w *world) {
		s := w.node()
		w.put("i")
		for n := range 3 {
			w.post(letter(n))
		}
		page, err := s.Messages(w.ctx, admin.MessageQuery{Limit: 2})
		w.must(err)
		rest, err := s.Messages(w.ctx, admin.MessageQuery{Before: page[1].Seq})
		w.must(err)
		want(w, "the rest", fmt.Sprintf("%d %s", len(rest), rest[0].ID), "1 out_0")
		_, err = s.Messages(w.ctx, admin.MessageQuery{State: "lost"})
		want(w, "an unknown state", fault.Of(err), fault.Invalid)
	})
}
