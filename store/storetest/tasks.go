package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"leasehold/admin"
	"leasehold/engine"
)

func (r *runner) tasks(t *testing.T) {
	hold := func(w *world, s Store, session string) admin.TaskHolder {
		w.Helper()
		h, err := s.HoldTask(w.ctx, session, "sweeper")
		w.must(err)
		return h
	}

	r.write(t, "a task is held by the first who asks, until its session is over", func(w *world) {
		s := w.node()
		other := w.h.Open()
		w.open(s, "a")
		w.open(other, "b")
		var first admin.TaskHolder
		w.must(w.do(func() (err error) { first, err = s.HoldTask(w.ctx, "a", "sweeper"); return err }))
		want(w, "holder", first, admin.TaskHolder{Task: "sweeper", Session: "a", Node: "node of a", Epoch: first.Epoch})
		want(w, "holder, asked by another", hold(w, other, "b"), first)
		want(w, "holder, asked again", hold(w, s, "a"), first)
		holders, err := other.TaskHolders(w.ctx)
		w.must(err)
		want(w, "holders", fmt.Sprint(holders), fmt.Sprint([]admin.TaskHolder{first}))

		w.clock.Step(-ttl) // the clock steps back, and epochs grow all the same
		w.must(s.EndSession(w.ctx, "a"))
		next := hold(w, other, "b")
		want(w, "successor", next.Session, "b")
		if next.Epoch <= first.Epoch {
			w.Errorf("got epoch %d after %d, want a larger one", next.Epoch, first.Epoch)
		}
		w.open(s, "c")
		want(w, "holder, asked by one who comes back", hold(w, s, "c"), next)
	})

	r.promise(t, "the task of a node that died is taken over once it is reaped", func(w *world) {
		s := w.node()
		w.open(s, "a")
		hold(w, s, "a")
		w.clock.Step(ttl)
		w.open(s, "b")
		want(w, "holder before", hold(w, s, "b").Session, "a")
		_, err := s.Reap(w.ctx, w.clock.Now())
		w.must(err)
		want(w, "holder after", hold(w, s, "b").Session, "b")
	})

	r.promise(t, "a released task is anybody's, and a stale release frees nothing", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.open(s, "b")
		h := hold(w, s, "a")
		id := engine.TaskLease("sweeper")
		for _, stale := range []struct {
			session string
			epoch   int64
		}{{"b", h.Epoch}, {"a", h.Epoch - 1}} {
			freed, err := s.Release(w.ctx, stale.session, []engine.Held{{ID: id, Epoch: stale.epoch}})
			w.must(err)
			want(w, "freed by a stale release", len(freed), 0)
		}
		freed, err := s.Release(w.ctx, "a", []engine.Held{{ID: id, Epoch: h.Epoch}})
		w.must(err)
		want(w, "freed", len(freed), 1)
		want(w, "holder", hold(w, s, "b").Session, "b")
	})

	r.promise(t, "a session that drains or does not exist takes no task", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.must(s.DrainSession(w.ctx, "a"))
		want(w, "holder for a draining one", hold(w, s, "a"), admin.TaskHolder{Task: "sweeper"})
		want(w, "holder for none", hold(w, s, "nobody"), admin.TaskHolder{Task: "sweeper"})
		w.open(s, "b")
		want(w, "holder", hold(w, s, "b").Session, "b")
	})

	r.promise(t, "nodes that ask at once agree on one", func(w *world) {
		nodes := []Store{w.node(), w.h.Open(), w.h.Open()}
		for n, s := range nodes {
			w.open(s, fmt.Sprint(n))
		}
		var wg sync.WaitGroup
		answers := make([]admin.TaskHolder, 12)
		for i := range answers {
			wg.Go(func() {
				n := i % len(nodes)
				var err error
				if answers[i], err = nodes[n].HoldTask(w.ctx, fmt.Sprint(n), "sweeper"); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		for _, a := range answers {
			want(w, "holder", a, answers[0])
		}
	})

	r.promise(t, "a task's lease is nobody's share: neither listed nor counted", func(w *world) {
		s := w.node()
		w.put("i")
		w.open(s, "a")
		before := w.snapshot(s)
		hold(w, s, "a")
		after := w.snapshot(s)
		want(w, "leases", fmt.Sprint(after.Leases), fmt.Sprint(before.Leases))
		nodes, err := s.Nodes(w.ctx)
		w.must(err)
		want(w, "leases of the node", nodes[0].Leases, 0)
	})

	r.promise(t, "only its holder notes the run of a task", func(w *world) {
		s := w.node()
		w.open(s, "a")
		w.open(s, "b")
		h := hold(w, s, "a")
		run := admin.TaskRun{Task: "sweeper", Result: "deleted 7 events"}
		for _, stale := range []admin.TaskHolder{{Session: "b", Epoch: h.Epoch}, {Session: "a", Epoch: h.Epoch - 1}} {
			run.Session, run.Epoch = stale.Session, stale.Epoch
			if err := s.SaveTaskRun(w.ctx, run); !errors.Is(err, engine.ErrFenced) {
				w.Errorf("by %s under %d: got %v, want ErrFenced", run.Session, run.Epoch, err)
			}
		}
		run.Session, run.Epoch = h.Session, h.Epoch
		w.must(s.SaveTaskRun(w.ctx, run))
		w.must(s.EndSession(w.ctx, "a"))
		if err := s.SaveTaskRun(w.ctx, run); !errors.Is(err, engine.ErrFenced) {
			w.Errorf("after its session's end: got %v, want ErrFenced", err)
		}
		runs, err := s.TaskRuns(w.ctx)
		w.must(err)
		want(w, "runs", len(runs), 1)
	})
}
