package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/internal/fault"
)

func (r *runner) installations(t *testing.T) {
	r.write(t, "an installation is made with revision 0 and comes back as it was put", func(w *world) {
		s := w.node()
		i := admin.Installation{
			ID: "i", Type: "fake", Config: []byte(`{"url":"wss://x"}`), Labels: map[string]string{"site": "berlin"}, Targets: []string{"app"}, Interactions: admin.Sync,
			Enabled: true, Source: "api", Fingerprint: "print", Identity: "bot",
		}
		err := w.do(func() error { _, err := s.PutInstallation(w.ctx, i, 0); return err })
		if w.form == persisted {
			want(w, "the repeat meets what the first made", fault.Is(err, fault.Conflict), true)
		} else {
			w.must(err)
		}
		got, err := s.Installation(w.ctx, "i")
		w.must(err)
		want(w, "type", got.Type, "fake")
		want(w, "config", string(got.Config), string(i.Config))
		want(w, "label", got.Labels["site"], "berlin")
		want(w, "interactions", got.Interactions, admin.Sync)
		want(w, "targets", slices.Equal(got.Targets, i.Targets), true)
		want(w, "enabled", got.Enabled, true)
		want(w, "source", got.Source, "api")
		want(w, "fingerprint", got.Fingerprint, "print")
		want(w, "identity", got.Identity, "bot")
		want(w, "revision", got.Revision, 1)
		want(w, "state: never reported", got.Status.State, "")
		want(w, "lease", w.leaseOf(s, "i"), engine.Lease{ID: "i"})
	})

	r.promise(t, "an installation that names no targets is told from one whose events go nowhere", func(w *world) {
		s := w.node()
		named := func(id string) bool {
			got, err := s.Installation(w.ctx, id)
			w.must(err)
			all, err := s.Installations(w.ctx)
			w.must(err)
			listed := slices.IndexFunc(all, func(i admin.Installation) bool { return i.ID == id })
			want(w, "targets of "+id, len(got.Targets)+len(all[listed].Targets), 0)
			want(w, "listed as shown: "+id, all[listed].Targets != nil, got.Targets != nil)
			return got.Targets != nil
		}
		w.put("default")
		w.put("nowhere", func(i *admin.Installation) { i.Targets = []string{} })
		want(w, "a default one's are named", named("default"), false)
		want(w, "a silent one's are named", named("nowhere"), true)
		rows := []admin.Installation{{ID: "f", Type: "fake", Enabled: true}}
		for _, targets := range [][]string{nil, {}, {}, nil} {
			was := rows[0].Targets != nil
			rows[0].Targets = targets
			added, changed, _, err := s.Reconcile(w.ctx, rows)
			w.must(err)
			want(w, "the file's are named", named("f"), targets != nil)
			want(w, "it is a change", len(changed) == 1, len(added) == 0 && was != (targets != nil))
		}
	})

	r.promise(t, "a change needs the stored revision", func(w *world) {
		s := w.node()
		i := w.put("i")
		if _, err := s.PutInstallation(w.ctx, i, 0); !fault.Is(err, fault.Conflict) {
			w.Errorf("revision 0: got %v, want a conflict", err)
		}
		if _, err := s.PutInstallation(w.ctx, i, 7); !fault.Is(err, fault.Conflict) {
			w.Errorf("another revision: got %v, want a conflict", err)
		}
		i.Type = "other"
		got, err := s.PutInstallation(w.ctx, i, i.Revision)
		w.must(err)
		want(w, "type", got.Type, "other")
		want(w, "revision", got.Revision, i.Revision+1)
		i.ID = "j"
		if _, err := s.PutInstallation(w.ctx, i, 1); !fault.Is(err, fault.NotFound) {
			w.Errorf("of none: got %v, want not found", err)
		}
	})

	r.promise(t, "a row without an id, a type or a source is invalid", func(w *world) {
		s := w.node()
		for _, i := range []admin.Installation{{Type: "fake", Source: "api"}, {ID: "i", Source: "api"}, {ID: "i", Type: "fake"}} {
			if _, err := s.PutInstallation(w.ctx, i, 0); !fault.Is(err, fault.Invalid) {
				w.Errorf("%+v: got %v, want invalid", i, err)
			}
		}
	})

	r.write(t, "enabling and disabling are shown, and writing what stands changes nothing", func(w *world) {
		s := w.node()
		w.put("i")
		w.must(w.do(func() error { return s.SetEnabled(w.ctx, "i", false) }))
		got, err := s.Installation(w.ctx, "i")
		w.must(err)
		want(w, "enabled", got.Enabled, false)
		want(w, "revision", got.Revision, 2)
		w.must(s.SetEnabled(w.ctx, "i", false))
		got, err = s.Installation(w.ctx, "i")
		w.must(err)
		want(w, "revision again", got.Revision, 2)
		if err := s.SetEnabled(w.ctx, "nobody", true); !fault.Is(err, fault.NotFound) {
			w.Errorf("of none: got %v, want not found", err)
		}
	})

	bot := func(i *admin.Installation) { i.Identity = "bot" }
	r.promise(t, "one account is enabled once per type", func(w *world) {
		s := w.node()
		w.put("i", bot)
		twin := admin.Installation{ID: "j", Type: "fake", Identity: "bot", Enabled: true, Source: "api"}
		if _, err := s.PutInstallation(w.ctx, twin, 0); !fault.Is(err, fault.Conflict) {
			w.Errorf("the same account: got %v, want a conflict", err)
		}
		_, err := s.Installation(w.ctx, "j")
		want(w, "nothing was written", fault.Is(err, fault.NotFound), true)
		w.put("other type", bot, func(i *admin.Installation) { i.Type = "other" })
		w.put("unknown account")
		w.put("unknown account too")
		w.put("disabled", bot, func(i *admin.Installation) { i.Enabled = false })
		if err := s.SetEnabled(w.ctx, "disabled", true); !fault.Is(err, fault.Conflict) {
			w.Errorf("enabling the same account: got %v, want a conflict", err)
		}
		w.must(s.RemoveInstallation(w.ctx, "i"))
		w.must(s.SetEnabled(w.ctx, "disabled", true))
	})

	r.promise(t, "a rider needs a carrier with a connection of its own", func(w *world) {
		s := w.node()
		w.put("i")
		w.put("r", via("i"))
		for _, carrier := range []string{"nobody", "r", "self"} {
			i := admin.Installation{ID: "self", Type: "fake", Via: carrier, Enabled: true, Source: "api"}
			if _, err := s.PutInstallation(w.ctx, i, 0); !fault.Is(err, fault.Invalid) {
				w.Errorf("via %s: got %v, want invalid", carrier, err)
			}
		}
		w.must(s.RemoveInstallation(w.ctx, "i")) // what rode on it does not keep others from changing
		w.put("k")
	})

	r.promise(t, "what waits goes with an installation to its new carrier", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.put("c")
		w.accept(term, "1")
		i, err := s.Installation(w.ctx, "i")
		w.must(err)
		i.Via = "c"
		_, err = s.PutInstallation(w.ctx, i, i.Revision)
		w.must(err)
		want(w, "under its own lease", len(w.pending(s, "i")), 0)
		want(w, "under its carrier's", len(w.pending(s, "c")), 1)
		w.must(w.mark(s, delivered(w.begin(s, "a", "c"), w.pending(s, "c")[0].Seq)))
	})

	r.write(t, "a removed installation is shown no more, and its backlog is still delivered", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.accept(term, "1")
		err := w.do(func() error { return s.RemoveInstallation(w.ctx, "i") })
		if w.form == persisted {
			want(w, "the repeat finds nothing", fault.Is(err, fault.NotFound), true)
		} else {
			w.must(err)
		}
		_, err = s.Installation(w.ctx, "i")
		want(w, "not found", fault.Is(err, fault.NotFound), true)
		all, err := s.Installations(w.ctx)
		w.must(err)
		want(w, "shown", len(all), 0)
		want(w, "set", fault.Is(s.SetEnabled(w.ctx, "i", true), fault.NotFound), true)
		want(w, "listed for the engine", len(w.snapshot(s).Installations), 1)
		w.must(w.mark(s, delivered(term, w.pending(s, "i")[0].Seq)))
		want(w, "its events stay", len(w.stored(s, "i")), 1)
	})

	r.promise(t, "a removed installation comes back with a new revision", func(w *world) {
		s := w.node()
		w.put("i")
		w.must(s.RemoveInstallation(w.ctx, "i"))
		got := w.put("i")
		if got.Revision <= 1 {
			w.Errorf("got revision %d, want one that was not seen before", got.Revision)
		}
		want(w, "removed", w.snapshot(s).Installations[0].Removed, false)
	})

	r.promise(t, "a backlog is counted with the age of its oldest", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.hold("idle")
		w.put("r", via("i"))
		first := w.clock.Now()
		w.accept(term, "1")
		w.clock.Step(1000)
		b := batch(term, "2", "3")
		b.Events[0].Event.Installation, b.Events[1].Targets = "r", []string{"app", "log"}
		_, err := s.Accept(w.ctx, b)
		w.must(err)
		all, err := s.Installations(w.ctx)
		w.must(err)
		for n, wanted := range []int64{3, 0, 1} { // i, idle, r
			one, err := s.Installation(w.ctx, all[n].ID)
			w.must(err)
			want(w, "backlog of "+all[n].ID, all[n].Backlog, wanted)
			want(w, "backlog read alone", one.Backlog, wanted)
			want(w, "oldest read alone", one.OldestPending.Equal(all[n].OldestPending), true)
		}
		want(w, "oldest", all[0].OldestPending.Equal(first), true)
		want(w, "oldest of none", all[1].OldestPending.IsZero(), true)
	})
}

func (r *runner) reconcile(t *testing.T) {
	file := func(id string, change ...func(*admin.Installation)) admin.Installation {
		i := admin.Installation{ID: id, Type: "fake", Enabled: true}
		for _, c := range change {
			c(&i)
		}
		return i
	}
	r.write(t, "the file's rows become exactly what it names", func(w *world) {
		s := w.node()
		w.put("api")
		_, _, _, err := s.Reconcile(w.ctx, []admin.Installation{file("same"), file("changed"), file("gone")})
		w.must(err)
		var added, changed, removed []string
		w.must(w.do(func() (err error) {
			added, changed, removed, err = s.Reconcile(w.ctx, []admin.Installation{
				file("same"), file("changed", func(i *admin.Installation) { i.Fingerprint = "new" }), file("new"),
			})
			return err
		}))
		if w.form == persisted {
			want(w, "differences after the repeat", len(added)+len(changed)+len(removed), 0)
		} else {
			want(w, "added", slices.Equal(added, []string{"new"}), true)
			want(w, "changed", slices.Equal(changed, []string{"changed"}), true)
			want(w, "removed", slices.Equal(removed, []string{"gone"}), true)
		}
		all, err := s.Installations(w.ctx)
		w.must(err)
		var rows []string
		for _, i := range all {
			rows = append(rows, i.ID+" of "+i.Source)
		}
		if !slices.Equal(rows, []string{"api of api", "changed of file", "new of file", "same of file"}) {
			w.Errorf("got %v, want what the file names and what the API made", rows)
		}
		same, err := s.Installation(w.ctx, "same")
		w.must(err)
		want(w, "revision of an unchanged row", same.Revision, 1)
	})

	r.write(t, "a store without installations is seeded once, and one with some never", func(w *world) {
		s := w.node()
		var seeded bool
		w.must(w.do(func() (err error) {
			_, seeded, err = s.Seed(w.ctx, []admin.Installation{file("one"), file("two")})
			return err
		}))
		want(w, "seeded", seeded, w.form != persisted)
		_, seeded, err := w.h.Open().Seed(w.ctx, []admin.Installation{file("one"), file("three")})
		w.must(err)
		want(w, "seeded by another node", seeded, false)
		all, err := s.Installations(w.ctx)
		w.must(err)
		want(w, "installations", len(all), 2)
	})

	r.promise(t, "of nodes that start at once one seeds", func(w *world) {
		nodes := []Store{w.node(), w.h.Open(), w.h.Open(), w.h.Open()}
		var wg sync.WaitGroup
		seeds := make([]bool, len(nodes))
		for n, s := range nodes {
			wg.Go(func() {
				var err error
				if _, seeds[n], err = s.Seed(w.ctx, []admin.Installation{file(fmt.Sprint("of-", n))}); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		winners := 0
		for _, seeded := range seeds {
			if seeded {
				winners++
			}
		}
		all, err := w.s.Installations(w.ctx)
		w.must(err)
		want(w, "nodes that seeded", winners, 1)
		want(w, "installations", len(all), 1)
	})

	r.promise(t, "a file that changes nothing writes nothing", func(w *world) {
		s := w.node()
		rows := []admin.Installation{file("i", func(i *admin.Installation) { i.Labels = map[string]string{"b": "1", "a": "2"} })}
		_, _, _, err := s.Reconcile(w.ctx, rows)
		w.must(err)
		known := w.snapshot(s).Version
		added, changed, removed, err := s.Reconcile(w.ctx, rows)
		w.must(err)
		want(w, "differences", len(added)+len(changed)+len(removed), 0)
		snap, err := s.List(w.ctx, known)
		w.must(err)
		want(w, "unchanged", snap.Unchanged, true)
	})

	r.promise(t, "an id that the API made is a conflict, and nothing of the file is applied", func(w *world) {
		s := w.node()
		w.put("i")
		_, _, _, err := s.Reconcile(w.ctx, []admin.Installation{file("a"), file("i")})
		want(w, "conflict", fault.Is(err, fault.Conflict), true)
		all, err := s.Installations(w.ctx)
		w.must(err)
		want(w, "rows", len(all), 1)
	})

	r.promise(t, "two rows may swap their accounts, but not share one", func(w *world) {
		s := w.node()
		as := func(id string) func(*admin.Installation) { return func(i *admin.Installation) { i.Identity = id } }
		for _, names := range [][2]string{{"x", "y"}, {"y", "x"}} {
			_, _, _, err := s.Reconcile(w.ctx, []admin.Installation{file("i", as(names[0])), file("j", as(names[1]))})
			w.must(err)
		}
		_, _, _, err := s.Reconcile(w.ctx, []admin.Installation{file("i", as("x")), file("j", as("x"))})
		want(w, "conflict", fault.Is(err, fault.Conflict), true)
		i, err := s.Installation(w.ctx, "i")
		w.must(err)
		want(w, "identity", i.Identity, "y")
	})

	r.promise(t, "one id twice is invalid", func(w *world) {
		_, _, _, err := w.node().Reconcile(w.ctx, []admin.Installation{file("i"), file("i")})
		want(w, "invalid", fault.Is(err, fault.Invalid), true)
	})

	r.promise(t, "a rider may stand before its carrier", func(w *world) {
		_, _, _, err := w.node().Reconcile(w.ctx, []admin.Installation{file("a", via("b")), file("b")})
		w.must(err)
	})

	r.promise(t, "a row that the file names again comes back", func(w *world) {
		s := w.node()
		_, _, _, err := s.Reconcile(w.ctx, []admin.Installation{file("i")})
		w.must(err)
		_, _, removed, err := s.Reconcile(w.ctx, nil)
		w.must(err)
		want(w, "removed", slices.Equal(removed, []string{"i"}), true)
		added, _, _, err := s.Reconcile(w.ctx, []admin.Installation{file("i")})
		w.must(err)
		want(w, "added", slices.Equal(added, []string{"i"}), true)
		_, err = s.Installation(w.ctx, "i")
		w.must(err)
	})
}
