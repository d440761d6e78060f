package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

func (r *runner) leases(t *testing.T) {
	r.write(t, "a free lease is granted with a larger epoch, and then it is held", func(w *world) {
		s := w.node()
		w.put("i")
		w.open(s, "a")
		before := w.leaseOf(s, "i")
		var grants []engine.Grant
		w.must(w.do(func() (err error) { grants, err = s.Claim(w.ctx, "a", []string{"i"}); return err }))
		l := w.leaseOf(s, "i")
		want(w, "owner", l.Owner, "a")
		want(w, "alive", l.Alive, true)
		if l.Epoch <= before.Epoch {
			w.Errorf("got epoch %d after %d, want a larger one", l.Epoch, before.Epoch)
		}
		if w.form == persisted {
			// The grant is not found again by claiming, and must not be adopted: it is
			// released as listed, and claimed anew.
			want(w, "grants of a lease that is held", len(grants), 0)
			freed, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: l.Epoch}})
			w.must(err)
			want(w, "freed", len(freed), 1)
			want(w, "grants after the release", len(w.claim(s, "a", "i")), 1)
			return
		}
		want(w, "grants", len(grants), 1)
		want(w, "grant", grants[0], engine.Grant{ID: "i", Epoch: l.Epoch})
	})

	r.promise(t, "a held lease is refused to another node and to its owner", func(w *world) {
		s := w.node()
		term := w.hold("i")
		other := w.h.Open()
		w.open(other, "b")
		want(w, "grants to another", len(w.claim(other, "b", "i")), 0)
		want(w, "grants to the owner", len(w.claim(s, "a", "i")), 0)
		want(w, "epoch", w.leaseOf(s, "i").Epoch, term.Epoch)
	})

	r.promise(t, "only the chosen and existing ids are granted", func(w *world) {
		s := w.node()
		w.put("i")
		w.put("j")
		w.open(s, "a")
		got := w.claim(s, "a", "j", "no such lease", `"; DROP TABLE lease; --`)
		want(w, "grants", len(got), 1)
		want(w, "owner of the other", w.leaseOf(s, "i").Owner, "")
		want(w, "grants for no ids", len(w.claim(s, "a")), 0)
	})

	r.promise(t, "a session that does not exist is granted nothing", func(w *world) {
		s := w.node()
		w.put("i")
		want(w, "grants", len(w.claim(s, "nobody", "i")), 0)
	})

	r.promise(t, "concurrent claims grant each lease once", func(w *world) {
		nodes := []Store{w.node(), w.h.Open(), w.h.Open()}
		var ids []string
		for i := range 40 {
			ids = append(ids, fmt.Sprintf("i%02d", i))
			w.put(ids[i])
		}
		for n, s := range nodes {
			w.open(s, fmt.Sprintf("node-%d", n))
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		granted := map[string][]string{}
		for n, s := range nodes {
			for range 8 {
				wg.Go(func() {
					session := fmt.Sprintf("node-%d", n)
					grants, err := s.Claim(w.ctx, session, ids)
					if err != nil {
						w.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, g := range grants {
						granted[g.ID] = append(granted[g.ID], session)
					}
				})
			}
		}
		wg.Wait()
		for _, l := range w.snapshot(w.s).Leases {
			if owners := granted[l.ID]; len(owners) != 1 || owners[0] != l.Owner {
				w.Errorf("%s: got grants to %v and the owner %s, want one and the same", l.ID, owners, l.Owner)
			}
		}
		want(w, "leases granted", len(granted), len(ids))
	})

	r.promise(t, "epochs only grow, over releases, owners and a clock that steps back", func(w *world) {
		s := w.node()
		w.put("i")
		w.open(s, "a")
		w.open(s, "b")
		last := int64(0)
		for n := range 6 {
			session := []string{"a", "b"}[n%2]
			g := w.claim(s, session, "i")["i"]
			if g.Epoch <= last {
				w.Errorf("grant %d: got epoch %d after %d, want a larger one", n, g.Epoch, last)
			}
			last = g.Epoch
			freed, err := s.Release(w.ctx, session, []engine.Held{{ID: "i", Epoch: g.Epoch}})
			w.must(err)
			want(w, "freed", len(freed), 1)
			w.clock.Step(time.Duration(n%3-1) * time.Hour)
		}
	})

	r.promise(t, "a lease of a dead owner is granted with one more failure, a released one without", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.clock.Step(ttl)
		w.open(s, "b")
		want(w, "grants while the row of the dead stands", len(w.claim(s, "b", "i")), 0)
		n, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped", n, 1)
		l := w.leaseOf(s, "i")
		want(w, "owner of a dead one's lease", l.Owner, "a")
		want(w, "alive", l.Alive, false)
		g := w.claim(s, "b", "i")["i"]
		want(w, "fails", g.Fails, 1)
		want(w, "run", g.Run, term.Run)
		_, err = s.Release(w.ctx, "b", []engine.Held{{ID: "i", Epoch: g.Epoch}})
		w.must(err)
		want(w, "fails after a release", w.claim(s, "b", "i")["i"].Fails, 1)
	})

	r.promise(t, "a death counts for a connection that may be its reason, and for none that waits or had lasted", func(w *world) {
		s := w.node()
		state := func(term channel.Term, state engine.State) {
			w.must(s.SaveStatus(w.ctx, []engine.TermStatus{{Term: term, Status: engine.LinkStatus{Installation: term.Installation, State: state, Since: w.clock.Now()}}}))
		}
		deaths := map[string]struct {
			live  func(term channel.Term)
			fails int
		}{
			"before it was connected": {func(channel.Term) {}, 1},
			"shortly after": {func(term channel.Term) {
				state(term, engine.Connected)
				w.clock.Step(engine.StableAfter - time.Second)
			}, 1},
			"after a long connection": {func(term channel.Term) {
				state(term, engine.Connected)
				w.clock.Step(engine.StableAfter)
			}, 0},
			"while it waited": {func(term channel.Term) {
				w.must(s.SaveBackoff(w.ctx, term, engine.Setback{Fails: 0, Wait: time.Second}))
			}, 0},
			"in a connection after a long one": {func(term channel.Term) {
				state(term, engine.Connected)
				w.clock.Step(engine.StableAfter)
				state(term, engine.Connecting)
			}, 1},
		}
		session := 0
		for name, d := range deaths {
			id := strings.ReplaceAll(name, " ", "-")
			w.put(id)
			w.open(s, fmt.Sprint(session))
			d.live(w.begin(s, fmt.Sprint(session), id))
			w.must(s.EndSession(w.ctx, fmt.Sprint(session)))
			for again := range 2 { // who takes it over and dies without a dial counts for nothing
				session++
				w.open(s, fmt.Sprint(session))
				want(w, fmt.Sprintf("fails after a death %s, owner %d", name, again), w.claim(s, fmt.Sprint(session), id)[id].Fails, d.fails)
				w.must(s.EndSession(w.ctx, fmt.Sprint(session)))
			}
			session++
		}
	})

	r.write(t, "a release frees what is held, and tells what it freed", func(w *world) {
		s := w.node()
		i, j := w.hold("i"), w.hold("j")
		var freed []string
		w.must(w.do(func() (err error) {
			freed, err = s.Release(w.ctx, "a", []engine.Held{{ID: "j", Epoch: j.Epoch}, {ID: "i", Epoch: i.Epoch}})
			return err
		}))
		if w.form == persisted {
			want(w, "freed by the repeat", len(freed), 0)
		} else {
			want(w, "freed", len(freed), 2)
		}
		want(w, "owner of i", w.leaseOf(s, "i").Owner, "")
		want(w, "owner of j", w.leaseOf(s, "j").Owner, "")
	})

	r.promise(t, "a stale release never frees a successor's lease", func(w *world) {
		s := w.node()
		old := w.hold("i")
		_, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: old.Epoch}})
		w.must(err)
		now := w.begin(s, "a", "i")
		w.open(s, "b")
		for name, try := range map[string]struct {
			session string
			epoch   int64
		}{
			"its own earlier epoch": {"a", old.Epoch}, "a later epoch": {"a", now.Epoch + 1}, "another session": {"b", now.Epoch},
		} {
			freed, err := s.Release(w.ctx, try.session, []engine.Held{{ID: "i", Epoch: try.epoch}})
			w.must(err)
			want(w, "freed by "+name, len(freed), 0)
		}
		want(w, "owner", w.leaseOf(s, "i").Owner, "a")
	})

	r.write(t, "the backoff is kept over owners, counts down, and is capped at six hours", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.must(w.do(func() error { return s.SaveBackoff(w.ctx, term, engine.Setback{Fails: 7, Wait: time.Hour}) }))
		again := func(session string) (g engine.Grant) {
			w.must(errors.Join(s.EndSession(w.ctx, "a"), s.EndSession(w.ctx, "b")))
			w.open(s, session)
			return w.claim(s, session, "i")["i"]
		}
		w.clock.Step(20 * time.Minute)
		g := again("b")
		want(w, "fails, with none for an owner that only waited", g.Fails, 7)
		want(w, "wait", g.Wait, 40*time.Minute)
		w.clock.Step(time.Hour)
		want(w, "wait that is over", again("a").Wait, 0)
		term.Owner, term.Epoch = "a", w.leaseOf(s, "i").Epoch
		w.must(s.SaveBackoff(w.ctx, term, engine.Setback{Fails: 0, Wait: 100 * time.Hour}))
		w.clock.Step(-time.Hour)
		want(w, "capped wait", again("b").Wait, 6*time.Hour)
	})

	r.promise(t, "the backoff of a stale holder is refused", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for name, stale := range staleTerms(term) {
			if name == "run" {
				continue // owner and epoch fence it
			}
			if err := s.SaveBackoff(w.ctx, stale, engine.Setback{Fails: 9, Wait: time.Hour}); !errors.Is(err, engine.ErrFenced) {
				w.Errorf("%s: got %v, want ErrFenced", name, err)
			}
		}
		w.must(s.EndSession(w.ctx, "a"))
		if err := s.SaveBackoff(w.ctx, term, engine.Setback{Fails: 9, Wait: time.Hour}); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("after its session's end: got %v, want ErrFenced", err)
		}
		w.open(s, "b")
		want(w, "fails", w.claim(s, "b", "i")["i"].Fails, 1)
	})

	r.write(t, "a changed fingerprint clears the backoff, and nothing else about a row does", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.must(s.SaveBackoff(w.ctx, term, engine.Setback{Fails: 5, Wait: time.Hour}))
		i, err := s.Installation(w.ctx, "i")
		w.must(err)
		i.Labels = map[string]string{"site": "berlin"}
		i, err = s.PutInstallation(w.ctx, i, i.Revision)
		w.must(err)
		w.must(errors.Join(s.SetEnabled(w.ctx, "i", false), s.SetEnabled(w.ctx, "i", true), s.DrainSession(w.ctx, "a")))
		reclaim := func() engine.Grant {
			_, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: w.leaseOf(s, "i").Epoch}})
			w.must(err)
			w.open(s, "a") // not draining any more
			return w.claim(s, "a", "i")["i"]
		}
		want(w, "fails before", reclaim().Fails, 5)
		i, err = s.Installation(w.ctx, "i")
		w.must(err)
		i.Fingerprint = "other"
		err = w.do(func() error { _, err := s.PutInstallation(w.ctx, i, i.Revision); return err })
		if w.form != persisted { // else the repeat meets its own new revision
			w.must(err)
		}
		g := reclaim()
		want(w, "fails", g.Fails, 0)
		want(w, "wait", g.Wait, 0)
		term.Epoch = g.Epoch
		late := engine.Setback{Fingerprint: "", Fails: 9, Wait: time.Hour}
		w.must(s.SaveBackoff(w.ctx, term, late))
		g = reclaim()
		want(w, "fails after a late backoff of the old one", g.Fails, 0)
		want(w, "wait after a late backoff of the old one", g.Wait, 0)
		term.Epoch, late.Fingerprint = g.Epoch, "other"
		w.must(w.do(func() error { return s.SaveBackoff(w.ctx, term, late) }))
		want(w, "fails of the new one", reclaim().Fails, 9)
	})
}

// staleTerms are a term with one part wrong each.
func staleTerms(t channel.Term) map[string]channel.Term {
	epoch, later, owner, lease, run := t, t, t, t, t
	epoch.Epoch--
	later.Epoch++
	owner.Owner = "somebody else"
	lease.Installation = "another lease"
	run.Run--
	return map[string]channel.Term{"earlier epoch": epoch, "later epoch": later, "owner": owner, "lease": lease, "run": run}
}

func (r *runner) terms(t *testing.T) {
	r.write(t, "each term has a larger run, whoever runs it", func(w *world) {
		s := w.node()
		term := w.hold("i")
		var run int64
		w.must(w.do(func() (err error) { run, _, err = s.BeginTerm(w.ctx, term, "bot"); return err }))
		if run <= term.Run {
			w.Errorf("got run %d after %d, want a larger one", run, term.Run)
		}
		w.must(s.EndSession(w.ctx, "a"))
		w.open(s, "b")
		next := w.begin(s, "b", "i")
		want(w, "run of the next owner", next.Run, run+1)
	})

	r.promise(t, "a term is begun by the holder alone", func(w *world) {
		s := w.node()
		term := w.hold("i")
		for name, stale := range staleTerms(term) {
			if name == "run" {
				continue // it is what the call makes
			}
			if _, _, err := s.BeginTerm(w.ctx, stale, "bot"); !errors.Is(err, engine.ErrFenced) {
				w.Errorf("%s: got %v, want ErrFenced", name, err)
			}
		}
		w.must(s.EndSession(w.ctx, "a"))
		if _, _, err := s.BeginTerm(w.ctx, term, "bot"); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("after its session's end: got %v, want ErrFenced", err)
		}
		w.open(s, "b")
		want(w, "run", w.claim(s, "b", "i")["i"].Run, term.Run)
	})

	r.promise(t, "a term begins where its identity's cursor stands", func(w *world) {
		s := w.node()
		term := w.hold("i")
		cursor, term := w.cursor(term, "bot")
		want(w, "no cursor", cursor == nil, true)
		b := batch(term, "1")
		b.Cursor = []byte("one")
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		cursor, term = w.cursor(term, "bot")
		want(w, "cursor", string(cursor), "one")
		cursor, term = w.cursor(term, "another bot under the same id")
		want(w, "cursor of another identity", cursor == nil, true)
		b = batch(term, "2")
		b.Identity, b.Cursor = "another bot under the same id", []byte{}
		_, err = s.Accept(w.ctx, b)
		w.must(err)
		cursor, term = w.cursor(term, "another bot under the same id")
		want(w, "an empty cursor is one", cursor != nil && len(cursor) == 0, true)
		cursor, _ = w.cursor(term, "bot")
		want(w, "cursor of the first", string(cursor), "one")
	})
}
