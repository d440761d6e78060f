package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"leasehold/engine"
	"leasehold/internal/fault"
)

func (r *runner) sessions(t *testing.T) {
	r.write(t, "a session is opened with the store's clock and listed", func(w *world) {
		s := w.node()
		var got engine.Session
		w.must(w.do(func() (err error) { got, err = s.OpenSession(w.ctx, request("a")); return err }))
		want(w, "id", got.ID, "a")
		want(w, "now", got.Now.Equal(w.clock.Now()), true)
		peers := w.snapshot(s).Peers
		want(w, "peers", len(peers), 1)
		want(w, "peer", peers[0], engine.Peer{Session: "a", Instance: "instance of a", Weight: 1})
	})

	r.promise(t, "a session is not alone in the world", func(w *world) {
		s := w.node()
		want(w, "sole", s.Sole(), false)
		w.open(s, "a")
		w.open(w.h.Open(), "b")
		want(w, "peers", len(w.snapshot(s).Peers), 2)
	})

	r.write(t, "a restart on the same host replaces its own previous session at once", func(w *world) {
		s := w.node()
		w.open(s, "old")
		next := request("new")
		next.Instance, next.Previous = "instance of old", "old"
		w.must(w.do(func() error { _, err := s.OpenSession(w.ctx, next); return err }))
		peers := w.snapshot(s).Peers
		want(w, "peers", len(peers), 1)
		want(w, "session", peers[0].Session, "new")
	})

	r.write(t, "another session of the instance is refused until the first has expired", func(w *world) {
		s := w.node()
		w.open(s, "first")
		copied := request("copy")
		copied.Instance, copied.Host, copied.Previous = "instance of first", "boot-2/7", "first"
		if _, err := s.OpenSession(w.ctx, copied); !errors.Is(err, engine.ErrIdentityTaken) {
			w.Errorf("on another host: got %v, want ErrIdentityTaken", err)
		}
		copied.Host, copied.Previous = "boot-1/1", ""
		if _, err := s.OpenSession(w.ctx, copied); !errors.Is(err, engine.ErrIdentityTaken) {
			w.Errorf("without knowing the first: got %v, want ErrIdentityTaken", err)
		}
		want(w, "session", w.snapshot(s).Peers[0].Session, "first")
		w.clock.Step(ttl)
		w.must(w.do(func() error { _, err := s.OpenSession(w.ctx, copied); return err }))
		want(w, "session after the expiry", w.snapshot(s).Peers[0].Session, "copy")
	})

	r.write(t, "a renewal extends the session from now on", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.clock.Step(ttl - time.Second)
		var got engine.Session
		w.must(w.do(func() (err error) { got, err = s.RenewSession(w.ctx, "a", ttl); return err }))
		want(w, "now", got.Now.Equal(w.clock.Now()), true)
		w.clock.Step(ttl - time.Second)
		n, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped before the new expiry", n, 0)
		w.clock.Step(time.Second)
		n, err = s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped at the new expiry", n, 1)
	})

	r.promise(t, "a renewal after the expiry counts while nobody has reaped", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.clock.Step(10 * ttl)
		_, err := s.RenewSession(w.ctx, "a", ttl)
		w.must(err)
		n, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped", n, 0)
	})

	r.promise(t, "a renewal never brings a session back", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.clock.Step(ttl)
		n, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped", n, 1)
		if _, err := s.RenewSession(w.ctx, "a", ttl); !errors.Is(err, engine.ErrSessionGone) {
			w.Errorf("got %v, want ErrSessionGone", err)
		}
		want(w, "peers", len(w.snapshot(s).Peers), 0)
	})

	r.promise(t, "a foreign renewal affects no row", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.clock.Step(ttl - time.Second)
		if _, err := s.RenewSession(w.ctx, "b", ttl); !errors.Is(err, engine.ErrSessionGone) {
			w.Errorf("got %v, want ErrSessionGone", err)
		}
		w.clock.Step(time.Second)
		n, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped: the other one's expiry stands", n, 1)
	})

	r.promise(t, "a session that was replaced learns that its identity is taken", func(w *world) {
		s := w.node()
		w.open(s, "old")
		next := request("new")
		next.Instance, next.Previous = "instance of old", "old"
		_, err := w.h.Open().OpenSession(w.ctx, next)
		w.must(err)
		if _, err := s.RenewSession(w.ctx, "old", ttl); !errors.Is(err, engine.ErrIdentityTaken) {
			w.Errorf("got %v, want ErrIdentityTaken", err)
		}
	})

	r.write(t, "a draining session is listed as such and granted nothing", func(w *world) {
		s := w.node()
		w.put("i")
		w.open(s, "a")
		w.must(w.do(func() error { return s.DrainSession(w.ctx, "a") }))
		want(w, "draining", w.snapshot(s).Peers[0].Draining, true)
		want(w, "grants", len(w.claim(s, "a", "i")), 0)
	})

	r.write(t, "a drained node is granted nothing, over its sessions, until it is resumed", func(w *world) {
		s := w.node()
		w.put("i")
		w.open(s, "a")
		w.open(s, "b")
		version := w.snapshot(s).Version
		w.must(w.do(func() error { return s.DrainNode(w.ctx, "instance of a", true) }))
		changed, err := s.List(w.ctx, version)
		w.must(err)
		want(w, "the list is the same", changed.Unchanged, false)
		draining := func() string {
			var all strings.Builder
			for _, p := range w.snapshot(s).Peers {
				if p.Draining {
					all.WriteString(p.Session + " ")
				}
			}
			return all.String()
		}
		want(w, "draining", draining(), "a ")
		want(w, "grants", len(w.claim(s, "a", "i")), 0)

		next := request("a2")
		next.Instance, next.Previous = "instance of a", "a"
		w.must(w.do(func() error { _, err := s.OpenSession(w.ctx, next); return err }))
		want(w, "draining after a restart", draining(), "a2 ")
		w.must(s.EndSession(w.ctx, "a2"))
		w.must(s.DrainNode(w.ctx, "instance of a", true))
		next.ID, next.Previous = "a3", ""
		_, err = s.OpenSession(w.ctx, next)
		w.must(err)
		want(w, "draining after it had ended", draining(), "a3 ")
		want(w, "grants", len(w.claim(s, "a3", "i")), 0)

		w.must(w.do(func() error { return s.DrainNode(w.ctx, "instance of a", false) }))
		want(w, "draining once resumed", draining(), "")
		want(w, "grants once resumed", len(w.claim(s, "a3", "i")), 1)
	})

	r.promise(t, "a node that nobody knows is neither drained nor resumed", func(w *world) {
		s := w.node()
		w.open(s, "a")
		for _, drained := range []bool{true, false} {
			if err := s.DrainNode(w.ctx, "nobody", drained); !fault.Is(err, fault.NotFound) {
				w.Errorf("drained %v: got %v, want a fault that says not found", drained, err)
			}
		}
		w.must(s.DrainNode(w.ctx, "instance of a", false))
		want(w, "draining", w.snapshot(s).Peers[0].Draining, false)
	})

	r.write(t, "an ended session is gone, and ending it again succeeds", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.must(w.do(func() error { return s.EndSession(w.ctx, "a") }))
		w.must(s.EndSession(w.ctx, "a"))
		want(w, "peers", len(w.snapshot(s).Peers), 0)
	})

	r.write(t, "the reaper takes what has expired and nothing else", func(w *world) {
		s := w.node()
		w.open(s, "old")
		w.clock.Step(ttl / 2)
		w.open(s, "young")
		w.clock.Step(ttl / 2)
		var n int
		w.must(w.do(func() (err error) { n, err = s.Reap(w.ctx, w.clock.Now()); return err }))
		if w.form != persisted { // the count was the answer that was lost
			want(w, "reaped", n, 1)
		}
		peers := w.snapshot(s).Peers
		want(w, "peers", len(peers), 1)
		want(w, "left", peers[0].Session, "young")
	})

	r.promise(t, "a reaper takes nothing when the store's clock is ahead of what it counts with", func(w *world) {
		s := w.node()
		w.open(s, "a")
		before := w.clock.Now()
		w.clock.Step(time.Hour)
		n, err := s.Reap(w.ctx, before.Add(10*time.Second))
		w.must(err)
		want(w, "reaped", n, 0)
	})

	r.promise(t, "a clock that steps back ends no session and revives none", func(w *world) {
		s := w.node()
		w.open(s, "dead")
		w.clock.Step(ttl)
		_, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		w.open(s, "a")
		w.clock.Step(-time.Hour)
		n, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "reaped", n, 0)
		_, err = s.RenewSession(w.ctx, "a", ttl)
		w.must(err)
		if _, err := s.RenewSession(w.ctx, "dead", ttl); !errors.Is(err, engine.ErrSessionGone) {
			w.Errorf("the dead one: got %v, want ErrSessionGone", err)
		}
	})
}

func (r *runner) sole(t *testing.T) {
	if r.build(t, &Clock{}).OpenSole == nil {
		return // a database that several processes share by nature
	}
	// restart opens the database as the only process, runs f, and leaves without
	// ending its session: as a crash does.
	restart := func(w *world, session, host string, f func()) {
		w.s = w.h.OpenSole()
		next := request(session)
		next.Instance, next.Host = "instance", host
		w.must(w.do(func() error { _, err := w.s.OpenSession(w.ctx, next); return err }))
		f()
		w.must(w.s.Close())
	}

	r.write(t, "a sole owner ends every other session at once", func(w *world) {
		restart(w, "old", "boot-1/1", func() { want(w, "sole", w.s.Sole(), true) })
		restart(w, "new", "boot-1/1", func() {
			peers := w.snapshot(w.s).Peers
			want(w, "peers", len(peers), 1)
			want(w, "session", peers[0].Session, "new")
		})
	})

	r.write(t, "a sole owner's session never expires", func(w *world) {
		restart(w, "a", "boot-1/1", func() {
			w.clock.Step(1000 * time.Hour)
			n, err := w.s.Reap(w.ctx, w.clock.Now())
			w.must(err)
			want(w, "reaped", n, 0)
			_, err = w.s.RenewSession(w.ctx, "a", ttl)
			w.must(err)
			if _, err := w.s.RenewSession(w.ctx, "b", ttl); !errors.Is(err, engine.ErrSessionGone) {
				w.Errorf("another one: got %v, want ErrSessionGone", err)
			}
		})
	})

	r.write(t, "the backoff survives a restart and is forgotten at a new boot of the machine", func(w *world) {
		restart(w, "a", "boot-1/1", func() {
			w.put("i")
			term := w.begin(w.s, "a", "i")
			w.must(w.s.SaveBackoff(w.ctx, term, engine.Setback{Fails: 5, Wait: time.Hour}))
			freed, err := w.s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
			w.must(err)
			want(w, "freed", len(freed), 1)
		})
		restart(w, "b", "boot-1/1", func() {
			g := w.claim(w.s, "b", "i")["i"]
			want(w, "fails after a restart", g.Fails, 5)
			want(w, "wait after a restart", g.Wait, time.Hour)
		})
		restart(w, "c", "boot-2/1", func() {
			g := w.claim(w.s, "c", "i")["i"]
			want(w, "fails after a boot", g.Fails, 0)
			want(w, "wait after a boot", g.Wait, 0)
		})
	})
}
