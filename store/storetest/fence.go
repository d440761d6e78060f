package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"leasehold/delivery"
	"leasehold/engine"
)

func (r *runner) fence(t *testing.T) {
	r.promise(t, "an accept of any term but the current one writes nothing", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for name, stale := range staleTerms(term) {
			b := batch(stale, "stale")
			b.Cursor = []byte("stale")
			if _, err := s.Accept(w.ctx, b); !errors.Is(err, engine.ErrFenced) {
				w.Errorf("%s: got %v, want ErrFenced", name, err)
			}
		}
		want(w, "events", len(w.stored(s, "i")), 0)
		cursor, _ := w.cursor(term, "bot")
		want(w, "no cursor", cursor == nil, true)
	})

	r.write(t, "an accept of the term before lands before its successor's beginning or never", func(w *world) {
		s := w.node()
		before := w.hold("i")
		var now int64
		w.must(w.do(func() (err error) { now, _, err = s.BeginTerm(w.ctx, before, "bot"); return err }))
		if _, err := s.Accept(w.ctx, batch(before, "late")); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("got %v, want ErrFenced", err)
		}
		before.Run = now
		w.accept(before, "on time")
		if ids := w.stored(s, "i"); !slices.Equal(ids, []string{"on time"}) {
			w.Errorf("got events %v, want the successor's", ids)
		}
	})

	r.promise(t, "accepts beside the beginning of a term are stored or fenced, never both", func(w *world) {
		s := w.node()
		term := w.hold("i")
		var mu sync.Mutex
		var wg sync.WaitGroup
		kept := 0
		for n := range 50 {
			wg.Go(func() {
				_, err := s.Accept(w.ctx, batch(term, fmt.Sprint(n)))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					kept++
				} else if !errors.Is(err, engine.ErrFenced) {
					w.Error(err)
				}
			})
		}
		_, next := w.cursor(term, "bot")
		atBegin := len(w.stored(s, "i"))
		wg.Wait()
		want(w, "events are those whose callers were told so", len(w.stored(s, "i")), kept)
		want(w, "events after the successor began", len(w.stored(s, "i")), atBegin)
		w.accept(next, "successor's")
	})

	r.promise(t, "a session that is gone writes nothing for the leases it held", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		w.must(s.EndSession(w.ctx, "a"))
		if _, err := s.Accept(w.ctx, batch(term, "2")); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("got %v, want ErrFenced", err)
		}
		want(w, "events", len(w.stored(s, "i")), 1)
		seq := w.pending(s, "i")[0].Seq
		if err := w.mark(s, delivered(term, seq)); !errors.Is(err, delivery.ErrMarkFenced) {
			w.Errorf("a mark: got %v, want ErrMarkFenced", err)
		}
		if _, _, err := s.BeginTerm(w.ctx, term, "bot"); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("the beginning of a term: got %v, want ErrFenced", err)
		}
		want(w, "deliveries that wait", len(w.pending(s, "i")), 1)
	})

	r.promise(t, "a draining session still stores what it hears", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.must(s.DrainSession(w.ctx, "a"))
		w.accept(term, "1")
	})

	r.promise(t, "a released lease stores nothing more for its owner", func(w *world) {
		s := w.node()
		term := w.hold("i")
		_, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		if _, err := s.Accept(w.ctx, batch(term, "1")); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("got %v, want ErrFenced", err)
		}
	})

	r.promise(t, "no event of an earlier epoch stands behind one of a later", func(w *world) {
		nodes := []Store{w.node(), w.h.Open()}
		w.put("i")
		for round := range 12 {
			s, session := nodes[round%2], fmt.Sprintf("session-%d", round)
			w.open(s, session)
			term := w.begin(s, session, "i")
			var wg sync.WaitGroup
			for n := range 10 {
				wg.Go(func() {
					_, err := s.Accept(w.ctx, batch(term, fmt.Sprintf("%d-%d", round, n)))
					if err != nil && !errors.Is(err, engine.ErrFenced) {
						w.Error(err)
					}
				})
			}
			w.must(nodes[(round+1)%2].EndSession(w.ctx, session))
			wg.Wait()
		}
		audited, err := w.s.Audit(w.ctx, 0)
		w.must(err)
		want(w, "violations", len(audited.Violations), 0)
		want(w, "events seen", audited.Events, len(w.stored(w.s, "i")))
	})
}
