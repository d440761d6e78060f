package storetest

import (
	"fmt"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
)

func (r *runner) tokens(t *testing.T) {
	some := func(w *world) apitoken.Token {
		return apitoken.Token{
			ID: "t1", Name: "billing", Scopes: []string{"read", "messages:send"}, Installations: []string{"acme*"},
			ExpiresAt: w.clock.Now().Add(time.Hour), Hash: []byte("\x00hash\xff"),
		}
	}
	r.write(t, "a token is stored whole, and found by its id", func(w *world) {
		s := w.node()
		in := some(w)
		w.must(w.do(func() error { return s.PutToken(w.ctx, in) }))
		got, err := w.h.Open().Token(w.ctx, "t1")
		w.must(err)
		in.CreatedAt = w.clock.Now()
		want(w, "token", fmt.Sprint(got), fmt.Sprint(in))
		all, err := s.Tokens(w.ctx)
		w.must(err)
		want(w, "tokens", fmt.Sprint(all), fmt.Sprint([]apitoken.Token{in}))
		_, err = s.Token(w.ctx, "none")
		want(w, "one that is not there", fault.Of(err), fault.NotFound)
	})

	r.promise(t, "a name is given once, until its token is removed by it or by its id", func(w *world) {
		s := w.node()
		w.must(s.PutToken(w.ctx, some(w)))
		other := some(w)
		other.ID = "t2"
		want(w, "the name again", fault.Of(s.PutToken(w.ctx, other)), fault.Conflict)
		w.must(s.RemoveToken(w.ctx, "billing"))
		w.must(s.PutToken(w.ctx, other))
		w.must(s.RemoveToken(w.ctx, "t2"))
		want(w, "removed twice", fault.Of(s.RemoveToken(w.ctx, "t2")), fault.NotFound)
	})

	r.write(t, "its last use is noted", func(w *world) {
		s := w.node()
		w.must(s.PutToken(w.ctx, some(w)))
		w.clock.Step(time.Minute)
		w.must(w.do(func() error { return s.TouchToken(w.ctx, "t1") }))
		got, err := s.Token(w.ctx, "t1")
		w.must(err)
		want(w, "used", got.UsedAt.Equal(w.clock.Now()), true)
	})

	r.promise(t, "the audit lists what was written, newest first, a page at a time", func(w *world) {
		s := w.node()
		for n := range 5 {
			w.must(s.NoteWrite(w.ctx, admin.WriteNote{Caller: "billing", Method: "POST", Path: fmt.Sprintf("/%d", n), Status: 200 + n}))
		}
		page, err := s.WriteNotes(w.ctx, 0, 3)
		w.must(err)
		want(w, "rows", len(page), 3)
		first := page[0]
		want(w, "time", first.At.Equal(w.clock.Now()), true)
		first.At, first.Seq = time.Time{}, 0
		want(w, "newest", first, admin.WriteNote{Caller: "billing", Method: "POST", Path: "/4", Status: 204})
		rest, err := s.WriteNotes(w.ctx, page[2].Seq, 3)
		w.must(err)
		want(w, "the rest", len(rest), 2)
		want(w, "oldest", rest[1].Path, "/0")
	})

	r.write(t, "what the audit has is kept for its retention, and for ever where that is zero", func(w *world) {
		s := w.node()
		note := func(path string) {
			w.must(s.NoteWrite(w.ctx, admin.WriteNote{Caller: "billing", Method: "POST", Path: path, Status: 200}))
		}
		for n := range 7 { // two batches and a part of one
			note(fmt.Sprintf("/%d", n))
		}
		w.clock.Step(89 * day)
		note("/young")
		left := func() (paths string) {
			rows, err := s.WriteNotes(w.ctx, 0, 100)
			w.must(err)
			for _, row := range rows {
				paths += row.Path
			}
			return paths
		}
		ninety := week()
		ninety.Audit = 90 * day
		swept, err := s.Sweep(w.ctx, ninety)
		w.must(err)
		want(w, "swept on the 89th day", swept.Idle(), true)
		w.clock.Step(day + time.Second)
		swept, err = s.Sweep(w.ctx, week())
		w.must(err)
		want(w, "swept without a retention", swept.Idle(), true)
		w.must(w.do(func() (err error) { swept, err = s.Sweep(w.ctx, ninety); return err }))
		if w.form != persisted { // the count was the answer that was lost
			want(w, "swept", fmt.Sprintf("%d: %s", swept.Notes, swept), "7: deleted 7 rows of the audit")
		}
		want(w, "left", left(), "/young")
		note("/next")
		want(w, "and with the next one", left(), "/next/young")
	})
}
