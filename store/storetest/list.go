package storetest

import (
	"fmt"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/engine"
)

func (r *runner) list(t *testing.T) {
	r.promise(t, "an empty store lists nothing and has a version", func(w *world) {
		snap := w.snapshot(w.node())
		want(w, "rows", len(snap.Installations)+len(snap.Leases)+len(snap.Peers), 0)
		want(w, "version is one", snap.Version > 0, true)
	})

	r.promise(t, "a listed installation carries what decides about it", func(w *world) {
		s := w.node()
		w.put("i", func(i *admin.Installation) {
			i.Config, i.Fingerprint, i.Identity = []byte(`{"url":"wss://x"}`), "print", "bot"
		})
		w.put("r", via("i"))
		got := w.snapshot(s).Installations
		want(w, "installations", len(got), 2)
		want(w, "type", got[0].Type, "fake")
		want(w, "config", string(got[0].Config), `{"url":"wss://x"}`)
		want(w, "fingerprint", got[0].Fingerprint, "print")
		want(w, "identity", got[0].Identity, "bot")
		want(w, "enabled", got[0].Enabled, true)
		want(w, "revision", got[0].Revision, 1)
		want(w, "via", got[1].Via, "i")
		leases := w.snapshot(s).Leases
		want(w, "leases: a rider has none", len(leases), 1)
		want(w, "lease", leases[0], engine.Lease{ID: "i"})
	})

	r.promise(t, "a list is unchanged until something that it shows is written", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.put("spare")
		known := w.snapshot(s).Version
		unchanged := func(what string, wanted bool) {
			w.Helper()
			snap, err := s.List(w.ctx, known)
			w.must(err)
			want(w, "unchanged after "+what, snap.Unchanged, wanted)
			want(w, "version stands after "+what, snap.Version == known, wanted)
			known = snap.Version
		}
		unchanged("nothing", true)
		w.accept(term, "1", "2")
		unchanged("an accept", true)
		w.must(w.mark(s, delivered(term, 1)))
		unchanged("a mark", true)
		w.must(s.SaveStatus(w.ctx, []engine.TermStatus{{Term: term, Status: engine.LinkStatus{Installation: "i", State: engine.Connected}}}))
		unchanged("a state", true)
		w.must(s.Probe(w.ctx))
		unchanged("a probe", true)
		w.claim(s, "a", "spare")
		unchanged("a claim", false)
		w.must(s.SetEnabled(w.ctx, "spare", false))
		unchanged("a disabling", false)
		w.must(s.DrainSession(w.ctx, "a"))
		unchanged("a drain", false)
		unchanged("that", true)
	})

	r.promise(t, "what another node writes is seen", func(w *world) {
		s := w.node()
		w.put("i")
		known := w.snapshot(s).Version
		other := w.h.Open()
		w.open(other, "b")
		snap, err := s.List(w.ctx, known)
		w.must(err)
		want(w, "unchanged", snap.Unchanged, false)
		want(w, "peers", len(snap.Peers), 1)
	})

	r.promise(t, "a disabled installation shows a backlog while deliveries wait", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1", "2")
		backlog := func() bool { return w.snapshot(s).Installations[0].Backlog }
		want(w, "backlog of an enabled one", backlog(), false)
		w.must(s.SetEnabled(w.ctx, "i", false))
		want(w, "backlog", backlog(), true)
		known := w.snapshot(s).Version
		w.must(w.mark(s, delivered(term, 1)))
		w.must(w.mark(s, delivery.Mark{Term: term, Seq: 2, Target: "app", State: delivery.Dead, Count: true, Error: "gone"}))
		snap, err := s.List(w.ctx, known)
		w.must(err)
		want(w, "unchanged after the last delivery", snap.Unchanged, false)
		want(w, "backlog after it", snap.Installations[0].Backlog, false)
		known = snap.Version
		w.accept(term, "3") // heard before its connection had ended
		snap, err = s.List(w.ctx, known)
		w.must(err)
		want(w, "unchanged after a late accept", snap.Unchanged, false)
		want(w, "backlog after it", snap.Installations[0].Backlog, true)
	})

	r.promise(t, "a removed installation is listed while it is leased or has a backlog", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		w.must(s.RemoveInstallation(w.ctx, "i"))
		got := w.snapshot(s).Installations
		want(w, "listed", len(got), 1)
		want(w, "removed", got[0].Removed, true)
		want(w, "backlog", got[0].Backlog, true)
		w.must(w.mark(s, delivered(term, 1)))
		want(w, "listed while it is leased", len(w.snapshot(s).Installations), 1)
		_, err := s.Release(w.ctx, "a", []engine.Held{{ID: "i", Epoch: term.Epoch}})
		w.must(err)
		want(w, "listed at last", len(w.snapshot(s).Installations), 0)
	})

	r.promise(t, "a rider's backlog stands under its carrier and is told apart", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.put("r1", via("i"))
		w.put("r2", via("i"))
		b := batch(term, "1")
		b.Events[0].Event.Installation = "r1"
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		w.must(s.SetEnabled(w.ctx, "r1", false))
		w.must(s.SetEnabled(w.ctx, "r2", false))
		for _, i := range w.snapshot(s).Installations {
			want(w, "backlog of "+i.ID, i.Backlog, i.ID == "r1")
		}
	})

	r.promise(t, "a change wakes whoever watches, once for all that came before", func(w *world) {
		s := w.node()
		changes := s.Watch(w.ctx)
		for n := range 3 {
			w.put(fmt.Sprintf("i%d", n))
		}
		select {
		case <-changes:
		case <-time.After(5 * time.Second):
			w.Fatal("got no wake-up, want one")
		}
		select {
		case <-changes:
			w.Error("got a second wake-up, want them coalesced")
		default:
		}
	})
}
