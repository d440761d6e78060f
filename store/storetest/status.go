package storetest

import (
	"errors"
	"testing"
	"time"

	"leasehold/engine"
)

func (r *runner) status(t *testing.T) {
	r.write(t, "a link's state is stored and shown", func(w *world) {
		s := w.node()
		term := w.hold("i")
		at := w.clock.Now().Truncate(time.Millisecond)
		l := engine.LinkStatus{
			Installation: "i", State: engine.Backoff, Reason: "auth", Detail: "invalid_auth", Since: at, Attempts: 3,
			NextAttempt: at.Add(time.Minute), LastReady: at.Add(-time.Hour),
		}
		w.must(w.do(func() error { return s.SaveStatus(w.ctx, []engine.TermStatus{{Term: term, Status: l}}) }))
		i, err := s.Installation(w.ctx, "i")
		w.must(err)
		got := i.Status
		want(w, "state", got.State, "backoff")
		want(w, "reason", got.Reason, "auth")
		want(w, "detail", got.Detail, "invalid_auth")
		want(w, "attempts", got.Attempts, 3)
		want(w, "since", got.Since.Equal(at), true)
		want(w, "next attempt", got.NextAttempt.Equal(at.Add(time.Minute)), true)
		want(w, "last ready", got.LastReady.Equal(at.Add(-time.Hour)), true)
		want(w, "last event: none", got.LastEvent.IsZero(), true)
		want(w, "owner", i.Owner, "a")
		want(w, "node", i.Node, "node of a")
		want(w, "epoch", i.Epoch, term.Epoch)
	})

	r.promise(t, "fenced states are skipped and the others stored", func(w *world) {
		s := w.node()
		term, other := w.hold("i"), w.hold("j")
		w.put("r", via("i"))
		say := func(t engine.TermStatus, id string, state engine.State) engine.TermStatus {
			t.Status = engine.LinkStatus{Installation: id, State: state}
			return t
		}
		all := []engine.TermStatus{
			say(engine.TermStatus{Term: term}, "i", engine.Connected), say(engine.TermStatus{Term: term}, "r", engine.Connected),
			say(engine.TermStatus{Term: term}, "j", engine.Wedged), // of another lease
		}
		for name, stale := range staleTerms(other) {
			if name != "run" { // owner and epoch fence it
				all = append(all, say(engine.TermStatus{Term: stale}, "j", engine.Wedged))
			}
		}
		w.must(s.SaveStatus(w.ctx, all))
		for id, wanted := range map[string]string{"i": "connected", "r": "connected", "j": ""} {
			i, err := s.Installation(w.ctx, id)
			w.must(err)
			want(w, "state of "+id, i.Status.State, wanted)
		}
		w.must(s.SaveStatus(w.ctx, nil))
	})

	r.write(t, "the budget of a window is counted before it is used, and never passed", func(w *world) {
		s := w.node()
		term := w.hold("i")
		window := w.clock.Now().Truncate(time.Hour)
		spend := func(start time.Time, n int) (used int, ok bool) {
			w.Helper()
			used, ok, err := s.Spend(w.ctx, term, start, n, 10)
			w.must(err)
			return used, ok
		}
		var used int
		w.must(w.do(func() (err error) { used, _, err = s.Spend(w.ctx, term, window, 3, 10); return err }))
		spent := 3
		if w.form == persisted {
			spent = 6 // what may have been used counts as used
		}
		want(w, "used", used, spent)
		used, ok := spend(window, 8)
		want(w, "past the limit", ok, false)
		want(w, "used still", used, spent)
		used, ok = spend(window, 10-spent)
		want(w, "up to the limit", ok, true)
		want(w, "used up", used, 10)
		_, ok = spend(window.Add(-time.Hour), 1)
		want(w, "in an earlier window, by a clock that was set back", ok, false)
		used, ok = spend(window.Add(time.Hour), 1)
		want(w, "in the next window", ok, true)
		want(w, "used there", used, 1)
	})

	r.promise(t, "the budget is the holder's alone", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for name, stale := range staleTerms(term) {
			if name == "run" {
				continue // owner and epoch fence it
			}
			if _, _, err := s.Spend(w.ctx, stale, w.clock.Now(), 1, 10); !errors.Is(err, engine.ErrFenced) {
				w.Errorf("%s: got %v, want ErrFenced", name, err)
			}
		}
		used, _, err := s.Spend(w.ctx, term, w.clock.Now(), 1, 10)
		w.must(err)
		want(w, "used", used, 1)
	})

	r.write(t, "a probe leaves nothing behind", func(w *world) {
		s := w.node()
		w.must(w.do(func() error { return s.Probe(w.ctx) }))
	})
}
