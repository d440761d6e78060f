package storetest

import (
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/fault"
)

// target is a row of the API.
func target(name, config string) admin.TargetRow {
	return admin.TargetRow{Name: name, Config: []byte(config), Source: admin.SourceAPI}
}

// stands compares a stored target.
func (w *world) stands(name, config, source string, revision int64, off string) {
	w.Helper()
	got, err := w.s.Target(w.ctx, name)
	w.must(err)
	want(w, "config of "+name, string(got.Config), config)
	want(w, "source of "+name, got.Source, source)
	want(w, "revision of "+name, got.Revision, revision)
	want(w, "off of "+name, got.Off, off)
	want(w, "it says since when", !got.OffSince.IsZero(), off != "")
}

func (w *world) targetNames() string {
	w.Helper()
	all, err := w.s.Targets(w.ctx)
	w.must(err)
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func (r *runner) targets(t *testing.T) {
	r.write(t, "a target is made with revision 0 and comes back as it was put", func(w *world) {
		s := w.node()
		err := w.do(func() error { _, err := s.PutTarget(w.ctx, target("app", `{"type":"log"}`), 0); return err })
		if w.form == persisted {
			want(w, "the repeat meets what the first made", fault.Of(err), fault.Conflict)
		} else {
			w.must(err)
		}
		w.stands("app", `{"type":"log"}`, admin.SourceAPI, 1, "")
		want(w, "names", w.targetNames(), "app")
	})

	r.promise(t, "a target is replaced at its revision and at no other", func(w *world) {
		s := w.node()
		_, err := s.PutTarget(w.ctx, target("app", `{}`), 3)
		want(w, "one that is not there", fault.Of(err), fault.NotFound)
		first, err := s.PutTarget(w.ctx, target("app", `{"a":1}`), 0)
		w.must(err)
		_, err = s.PutTarget(w.ctx, target("app", `{"a":2}`), first.Revision+1)
		want(w, "another revision", fault.Of(err), fault.Conflict)
		_, err = s.PutTarget(w.ctx, target("app", `{"a":2}`), first.Revision)
		w.must(err)
		w.stands("app", `{"a":2}`, admin.SourceAPI, 2, "")
		_, err = s.Target(w.ctx, "other")
		want(w, "another name", fault.Of(err), fault.NotFound)
	})

	r.write(t, "a target that answered 410 stays off over a restart, until it is switched on", func(w *world) {
		s := w.node()
		_, err := s.PutTarget(w.ctx, target("app", `{}`), 0)
		w.must(err)
		w.must(w.do(func() error { return s.SwitchTarget(w.ctx, "app", admin.OffGone, "answered 410\x00") }))
		w.s = w.h.Open()
		w.stands("app", `{}`, admin.SourceAPI, 2, admin.OffGone)
		got, err := w.s.Target(w.ctx, "app")
		w.must(err)
		want(w, "reason", strings.HasPrefix(got.Reason, "answered 410"), true)
		w.must(w.s.SwitchTarget(w.ctx, "app", "", ""))
		w.stands("app", `{}`, admin.SourceAPI, 3, "")
		want(w, "one that is not there", fault.Of(w.s.SwitchTarget(w.ctx, "other", "", "")), fault.NotFound)
	})

	r.promise(t, "another config asks a target again that answered 410, and not one that a person switched off", func(w *world) {
		s := w.node()
		for name, off := range map[string]string{"gone": admin.OffGone, "asked": admin.OffAsked} {
			_, err := s.PutTarget(w.ctx, target(name, `{"a":1}`), 0)
			w.must(err)
			w.must(s.SwitchTarget(w.ctx, name, off, "because"))
			_, err = s.PutTarget(w.ctx, target(name, `{"a":1}`), 2)
			w.must(err)
			w.stands(name, `{"a":1}`, admin.SourceAPI, 3, off)
			_, err = s.PutTarget(w.ctx, target(name, `{"a":2}`), 3)
			w.must(err)
		}
		w.stands("gone", `{"a":2}`, admin.SourceAPI, 4, "")
		w.stands("asked", `{"a":2}`, admin.SourceAPI, 4, admin.OffAsked)
		w.must(s.SwitchTarget(w.ctx, "asked", admin.OffGone, "answered 410"))
		w.stands("asked", `{"a":2}`, admin.SourceAPI, 4, admin.OffAsked)
	})

	r.write(t, "the file's targets become exactly what it says, and stay off where they were", func(w *world) {
		s := w.node()
		_, err := s.PutTarget(w.ctx, target("mine", `{}`), 0)
		w.must(err)
		_, _, _, err = s.ReconcileTargets(w.ctx, []admin.TargetRow{target("old", `{}`), target("app", `{"a":1}`), target("same", `{}`)})
		w.must(err)
		w.must(s.SwitchTarget(w.ctx, "same", admin.OffGone, "answered 410"))
		var added, changed, removed []string
		w.must(w.do(func() (err error) {
			added, changed, removed, err = s.ReconcileTargets(w.ctx, []admin.TargetRow{target("app", `{"a":2}`), target("new", `{}`), target("same", `{}`)})
			return err
		}))
		if w.form != persisted {
			want(w, "differences", strings.Join(added, " ")+"/"+strings.Join(changed, " ")+"/"+strings.Join(removed, " "), "new/app/old")
		}
		want(w, "names", w.targetNames(), "app mine new same")
		w.stands("app", `{"a":2}`, admin.SourceFile, 2, "")
		w.stands("same", `{}`, admin.SourceFile, 2, admin.OffGone)
		_, _, _, err = s.ReconcileTargets(w.ctx, []admin.TargetRow{target("late", `{}`), target("mine", `{}`)})
		want(w, "a name that the API has", fault.Of(err), fault.Conflict)
		want(w, "names afterwards", w.targetNames(), "app mine new same")
	})

	r.write(t, "a target for which something waits is removed when that is meant, and what waits ends with the reason", func(w *world) {
		s := w.node()
		term := w.hold("i")
		_, err := s.PutTarget(w.ctx, target("app", `{}`), 0)
		w.must(err)
		w.accept(term, "1", "2", "3")
		w.must(w.mark(s, delivered(term, w.pending(s, "i")[0].Seq)))
		_, err = s.RemoveTarget(w.ctx, "app", 1, false)
		want(w, "without force", fault.Of(err), fault.Conflict)
		want(w, "it says how many: "+err.Error(), strings.Contains(err.Error(), ": 2 deliveries"), true)
		_, err = s.RemoveTarget(w.ctx, "app", 2, true)
		want(w, "another revision", fault.Of(err), fault.Conflict)
		want(w, "waits still", len(w.pending(s, "i")), 2)
		var dead int
		err = w.do(func() (err error) { dead, err = s.RemoveTarget(w.ctx, "app", 1, true); return err })
		if w.form == persisted {
			want(w, "the repeat finds it gone", fault.Of(err), fault.NotFound)
		} else {
			w.must(err)
			want(w, "dead", dead, 2)
		}
		want(w, "names", w.targetNames(), "")
		want(w, "waits", len(w.pending(s, "i")), 0)
		all, err := s.Deliveries(w.ctx, admin.DeliveryQuery{State: delivery.Dead.String()})
		w.must(err)
		want(w, "dead letters", len(all), 2)
		want(w, "reason", all[0].LastError, "its target was removed")
	})

	r.promise(t, "the dead letters of a removed target are replayed once it is there again", func(w *world) {
		s := w.node()
		term := w.hold("i")
		_, err := s.PutTarget(w.ctx, target("app", `{}`), 0)
		w.must(err)
		w.accept(term, "1")
		_, err = s.RemoveTarget(w.ctx, "app", 1, true)
		w.must(err)
		_, err = s.PutTarget(w.ctx, target("app", `{}`), 0)
		w.must(err)
		all, err := s.Deliveries(w.ctx, admin.DeliveryQuery{})
		w.must(err)
		again, err := s.ReplayDeliveries(w.ctx, []string{all[0].ID})
		w.must(err)
		want(w, "waiting", len(again), 1)
	})

	r.promise(t, "whoever watches is woken by a change of a target", func(w *world) {
		s := w.node()
		changes := s.Watch(w.ctx)
		_, err := s.PutTarget(w.ctx, target("app", `{}`), 0)
		w.must(err)
		select {
		case <-changes:
		case <-time.After(10 * time.Second):
			w.Error("got no wake-up, want one")
		}
	})
}
