package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// TestTrial lets nodes commit, claim, release and lose their sessions beside each
// other, as fast as they can, and judges by commit times that nothing of a lease's
// former owner was ever committed.
func TestTrial(t *testing.T) {
	const nodes, leases, lasts = 4, 12, 6 * time.Second
	url := pgtest.Shared(t).Database(t)
	var stores []*postgres.Store
	for range nodes {
		stores = append(stores, open(t, url, postgres.Options{}))
	}
	var ids []string
	for n := range leases {
		ids = append(ids, fmt.Sprintf("i%02d", n))
		put(t, stores[0], ids[n])
	}
	pgtest.KeepBooks(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	tr := &trial{T: t, ids: ids}
	var wg sync.WaitGroup
	for n, s := range stores {
		for p := range 3 { // three sessions of each process's store, so that claims race
			wg.Go(func() { tr.live(ctx, s, fmt.Sprintf("%d-%d", n, p)) })
		}
	}
	wg.Wait()

	books := pgtest.ReadBooks(t, url)
	t.Logf("%d grants, %d events, %d told as stored, %d marks, %d fenced", books.Grants, books.Events, tr.told.Load(), tr.marked.Load(), tr.fenced.Load())
	if missing := tr.told.Load() - books.Events; missing > 0 {
		t.Errorf("events that were told as stored and are not there: got %d, want none", missing)
	}
	books.Sound(t)
	for what, got := range map[string]int64{"events": books.Events, "grants": books.Grants, "fenced": tr.fenced.Load(), "marks": tr.marked.Load()} {
		if got < 10 {
			t.Errorf("%s: got %d, want enough to judge by", what, got)
		}
	}
}

type trial struct {
	*testing.T
	ids                  []string
	sessions             atomic.Int64
	told, marked, fenced atomic.Int64
}

// live is one node's life after another, until ctx ends.
func (tr *trial) live(ctx context.Context, s *postgres.Store, instance string) {
	for ctx.Err() == nil {
		session := fmt.Sprintf("s%d", tr.sessions.Add(1))
		tr.ok(ctx, "open a session", func() error {
			_, err := s.OpenSession(ctx, engine.SessionRequest{ID: session, Instance: instance, Host: "boot/1", TTL: time.Minute})
			return err
		}())
		var wg sync.WaitGroup
		for range 1 + rand.N(4) {
			grants, err := s.Claim(ctx, session, tr.ids)
			tr.ok(ctx, "claim", err)
			var held []engine.Held
			for _, g := range grants {
				if rand.N(3) == 0 {
					held = append(held, engine.Held{ID: g.ID, Epoch: g.Epoch})
				}
				wg.Go(func() { tr.work(ctx, s, channel.Term{Installation: g.ID, Owner: session, Epoch: g.Epoch}) })
			}
			if len(held) > 0 {
				_, err := s.Release(ctx, session, held)
				tr.ok(ctx, "release", err)
			}
			<-time.After(rand.N(20 * time.Millisecond))
		}
		// Its own workers write on: a process that lost its session without knowing.
		tr.ok(ctx, "end the session", s.EndSession(ctx, session))
		wg.Wait()
	}
}

// work commits for a term until it is fenced.
func (tr *trial) work(ctx context.Context, s *postgres.Store, term channel.Term) {
	for range 50 {
		run, _, err := s.BeginTerm(ctx, term, "bot")
		if tr.over(ctx, err) {
			return
		}
		term.Run = run
		for n := range 1 + rand.N(8) {
			id := fmt.Sprintf("%d-%d-%d", term.Epoch, run, n)
			got, err := s.Accept(ctx, engine.AcceptRequest{Term: term, Identity: "bot", Cursor: []byte(id), Events: []engine.Heard{{
				Event: channel.Event{ID: id, Type: "message"}, Body: []byte(`{}`), Targets: []string{"app"},
			}}})
			if tr.over(ctx, err) {
				return
			}
			tr.told.Add(1)
			answers, err := s.Mark(ctx, []delivery.Mark{{Term: term, Seq: got.LastSeq, Target: "app", State: delivery.Delivered, Count: true}})
			if err == nil && answers[0] == nil {
				tr.marked.Add(1)
			}
			if tr.over(ctx, errors.Join(err, fencedMark(answers))) {
				return
			}
		}
	}
}

func fencedMark(answers []error) error {
	if len(answers) == 1 && errors.Is(answers[0], delivery.ErrMarkFenced) {
		return engine.ErrFenced
	}
	return nil
}

// over reports whether a worker ends: fenced, or the trial is over.
func (tr *trial) over(ctx context.Context, err error) bool {
	if errors.Is(err, engine.ErrFenced) {
		tr.fenced.Add(1)
		return true
	}
	tr.ok(ctx, "work", err)
	return err != nil
}

// ok fails the trial for an error that is not its end.
func (tr *trial) ok(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		tr.Errorf("%s: %v", what, err)
	}
}

func put(t testing.TB, s *postgres.Store, id string) {
	t.Helper()
	if _, err := s.PutInstallation(t.Context(), admin.Installation{ID: id, Type: "fake", Enabled: true, Source: "api"}, 0); err != nil {
		t.Fatal(err)
	}
}
