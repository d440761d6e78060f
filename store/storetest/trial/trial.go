// Package trial lets nodes claim, commit, release and lose their sessions beside
// each other, as fast as they can, and judges a store by its database's own books:
// nothing of a lease's former owner may have been committed after the lease was
// another's. What the database answered is not asked; what it kept is.
//
// The order of epochs in what was stored says little: of thousands of stale commits
// it showed none. So each database brings books that tell when things were
// committed. There is no SQL here.
package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store/storetest"
)

// Harness is one database.
type Harness struct {
	Nodes int // stores that are opened on it
	// Open opens it as one more node. What it returns may be closed more than once.
	Open func() storetest.Store
	// Keep opens the books, once the tables are there.
	Keep func()
	// Read reads them, once every store is closed.
	Read func() Books
}

const (
	// lastsEnv is how long the trial lasts; "make soak" says a minute.
	lastsEnv = "LEASEHOLD_TRIAL"
	lasts    = 4 * time.Second
	// longest is when a machine that is too slow for it has to have seen enough.
	longest = time.Minute
	enough  = 30 // grants, marks, and workers that were fenced
	leases  = 40 // several to a session, so that what they commit and release meets in several
)

// Run holds the trial.
func Run(t *testing.T, h Harness) {
	var stores []storetest.Store
	for range h.Nodes {
		stores = append(stores, h.Open())
	}
	tr := &trial{T: t}
	for n := range leases {
		tr.ids = append(tr.ids, fmt.Sprintf("i%02d", n))
		if _, err := stores[0].PutInstallation(t.Context(), admin.Installation{ID: tr.ids[n], Type: "fake", Enabled: true, Source: "api"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	h.Keep()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n, s := range stores {
		for p := range 3 { // three sessions of each process's store, so that claims race
			wg.Go(func() { tr.live(ctx, s, fmt.Sprintf("%d-%d", n, p)) })
		}
	}
	tr.wait(duration(t))
	cancel()
	wg.Wait()
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tr.judge(h.Read())
}

func duration(t *testing.T) time.Duration {
	text := os.Getenv(lastsEnv)
	if text == "" {
		return lasts
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// trial is what those who take part share.
type trial struct {
	*testing.T
	ids                         []string
	sessions                    atomic.Int64
	granted                     atomic.Int64
	told, marked, fenced, stuck atomic.Int64
}

// wait returns when the time is up and there is enough to judge by.
func (tr *trial) wait(d time.Duration) {
	for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
		took := time.Since(began)
		if tr.Failed() || took > longest+d || took > d && min(tr.granted.Load(), tr.marked.Load(), tr.fenced.Load()) >= enough {
			return
		}
	}
}

func (tr *trial) judge(b Books) {
	tr.Logf("%d grants, %d events, %d told as stored, %d marks, %d fenced, %d found the database busy",
		b.Grants, b.Events, tr.told.Load(), tr.marked.Load(), tr.fenced.Load(), tr.stuck.Load())
	if missing := tr.told.Load() - b.Events; missing > 0 {
		tr.Errorf("events that were told as stored and are not there: got %d, want none", missing)
	}
	b.Sound(tr)
	for what, got := range map[string]int64{"events": b.Events, "grants": b.Grants, "fenced": tr.fenced.Load(), "marks": tr.marked.Load()} {
		if got < enough {
			tr.Errorf("%s: got %d, want at least %d to judge by", what, got, enough)
		}
	}
}

// live is one node's life after another, until ctx ends.
func (tr *trial) live(ctx context.Context, s storetest.Store, instance string) {
	for ctx.Err() == nil {
		session := fmt.Sprintf("s%d", tr.sessions.Add(1))
		if !tr.ok(ctx, "open a session", func() error {
			_, err := s.OpenSession(ctx, engine.SessionRequest{ID: session, Instance: instance, Host: "boot/1", TTL: time.Minute})
			return err
		}) {
			continue
		}
		var wg sync.WaitGroup
		for range 1 + rand.N(4) {
			tr.round(ctx, &wg, s, session)
		}
		// Its own workers write on: a process that lost its session without knowing.
		for !tr.ok(ctx, "end the session", func() error { return s.EndSession(ctx, session) }) && ctx.Err() == nil {
			continue // the next one could not be opened beside it
		}
		wg.Wait()
	}
}

// round claims what there is, sets workers on it, and releases some of it under them.
func (tr *trial) round(ctx context.Context, wg *sync.WaitGroup, s storetest.Store, session string) {
	var grants []engine.Grant
	tr.ok(ctx, "claim", func() (err error) {
		grants, err = s.Claim(ctx, session, tr.ids)
		return err
	})
	tr.granted.Add(int64(len(grants)))
	var held []engine.Held
	for _, g := range grants {
		if rand.N(3) == 0 {
			held = append(held, engine.Held{ID: g.ID, Epoch: g.Epoch})
		}
		wg.Go(func() { tr.work(ctx, s, channel.Term{Installation: g.ID, Owner: session, Epoch: g.Epoch}) })
	}
	rand.Shuffle(len(held), func(a, b int) { held[a], held[b] = held[b], held[a] })
	<-time.After(rand.N(5 * time.Millisecond))
	if len(held) > 0 {
		tr.ok(ctx, "release", func() error {
			_, err := s.Release(ctx, session, held)
			return err
		})
	}
	<-time.After(rand.N(20 * time.Millisecond))
}

// work commits for a term until it is fenced.
func (tr *trial) work(ctx context.Context, s storetest.Store, term channel.Term) {
	for range 50 {
		err := tr.term(ctx, s, term)
		switch {
		case errors.Is(err, engine.ErrFenced):
			tr.fenced.Add(1)
			return
		case !tr.ok(ctx, "work", func() error { return err }) && ctx.Err() != nil:
			return
		}
	}
}

// term begins one and commits a few times under it.
func (tr *trial) term(ctx context.Context, s storetest.Store, term channel.Term) (err error) {
	if term.Run, _, err = s.BeginTerm(ctx, term, "bot"); err != nil {
		return err
	}
	for n := range 1 + rand.N(8) {
		id := fmt.Sprintf("%d-%d-%d", term.Epoch, term.Run, n)
		got, err := s.Accept(ctx, engine.AcceptRequest{Term: term, Identity: "bot", Cursor: []byte(id), Events: []engine.Heard{{
			Event: channel.Event{ID: id, Type: "message"}, Body: []byte(`{}`), Targets: []string{"app"},
		}}})
		if err != nil {
			return err
		}
		tr.told.Add(1)
		answers, err := s.Mark(ctx, []delivery.Mark{{Term: term, Seq: got.LastSeq, Target: "app", State: delivery.Delivered, Count: true}})
		switch {
		case err != nil:
			return err
		case answers[0] == nil:
			tr.marked.Add(1)
		case errors.Is(answers[0], delivery.ErrMarkFenced):
			return engine.ErrFenced
		}
	}
	return nil
}

// ok makes a call and fails the trial for an error that is neither its end nor a
// database that others kept busy for too long: then nothing was done.
func (tr *trial) ok(ctx context.Context, what string, call func() error) bool {
	err := call()
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
	case fault.Is(err, fault.Busy):
		tr.stuck.Add(1)
	default:
		tr.Errorf("%s: %v", what, err)
	}
	return false
}
