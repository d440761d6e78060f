package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/engine"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// What locks several leases takes them in the order of their ids, so that nobody
// waits in a circle: it is stopped half-way here, and what it has is looked at.
func TestLockOrder(t *testing.T) {
	t.Run("a release locks in the order of ids", func(t *testing.T) {
		o := newOrder(t)
		var held []engine.Held
		for _, term := range slices.Backward(o.terms) {
			held = append(held, engine.Held{ID: term.Installation, Epoch: term.Epoch})
		}
		middle := o.lock(o.terms[2])
		var wg sync.WaitGroup
		wg.Go(func() {
			freed, err := o.Release(t.Context(), "a", held)
			if err != nil || len(freed) != len(held) {
				t.Errorf("got %v, %v, want all of them freed", freed, err)
			}
		})
		o.half()
		middle()
		wg.Wait()
	})

	t.Run("so do accepts that are committed together", func(t *testing.T) {
		o := newOrder(t)
		first, middle := o.lock(o.first), o.lock(o.terms[2])
		var wg sync.WaitGroup
		wg.Go(func() { o.accept(o.first) })
		o.waits()
		for n, term := range slices.Backward(o.terms) { // they wait behind it
			wg.Go(func() { o.accept(term) })
			pgtest.Eventually(t, "an accept in the queue", func() bool { return postgres.Queued(o.Store, term.Installation) == len(o.terms)-n })
		}
		first()
		o.half()
		middle()
		wg.Wait()
	})
}

// order is a store with a session that holds leases which one committer writes for,
// in the order of their ids, and one more.
type order struct {
	*testing.T
	*postgres.Store

	url   string
	first channel.Term
	terms []channel.Term
}

func newOrder(t *testing.T) *order {
	t.Helper()
	o := &order{T: t, url: pgtest.Shared(t).Database(t)}
	o.Store = open(t, o.url, postgres.Options{})
	var ids []string
	for n := 0; len(ids) < 6; n++ {
		if id := fmt.Sprintf("i%02d", n); postgres.SameWriter(o.Store, "i00", id) {
			ids = append(ids, id)
		}
	}
	ctx := t.Context()
	for _, id := range ids {
		if _, err := o.PutInstallation(ctx, admin.Installation{ID: id, Type: "fake", Enabled: true, Source: "api"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.OpenSession(ctx, engine.SessionRequest{ID: "a", Instance: "instance of a", Host: "boot/1", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	grants, err := o.Claim(ctx, "a", ids)
	if err != nil || len(grants) != len(ids) {
		t.Fatalf("got grants %v, %v, want all", grants, err)
	}
	for _, g := range grants {
		term := channel.Term{Installation: g.ID, Owner: "a", Epoch: g.Epoch}
		if term.Run, _, err = o.BeginTerm(ctx, term, "bot"); err != nil {
			t.Fatal(err)
		}
		o.terms = append(o.terms, term)
	}
	slices.SortFunc(o.terms, func(a, b channel.Term) int {
		return slices.Index(ids, a.Installation) - slices.Index(ids, b.Installation)
	})
	o.first, o.terms = o.terms[0], o.terms[1:]
	return o
}

func (o *order) accept(term channel.Term) {
	if err := accept(o.T, o.Store, term, "event"); err != nil {
		o.Errorf("accept for %s: %v", term.Installation, err)
	}
}

// lock takes a lease away from everybody until it is called.
func (o *order) lock(term channel.Term) (unlock func()) {
	o.Helper()
	ctx := context.WithoutCancel(o.Context())
	conn, err := pgx.Connect(ctx, o.url)
	if err != nil {
		o.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		o.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "SELECT 1 FROM lease WHERE id = $1 FOR NO KEY UPDATE", term.Installation); err != nil {
		o.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = conn.Close(ctx) }) // which rolls it back
	o.Cleanup(unlock)
	return unlock
}

// waits returns once somebody waits for a lock.
func (o *order) waits() {
	o.Helper()
	pgtest.Eventually(o, "somebody who waits", func() bool {
		var n int
		pgtest.Get(o, o.url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", &n)
		return n > 0
	})
}

// half checks that whoever waits for the lease in the middle has what comes before
// it, and nothing that comes after.
func (o *order) half() {
	o.Helper()
	middle := o.terms[2].Installation
	pgtest.Eventually(o, "what waits for the one in the middle", func() bool {
		ids := o.locked()
		return !slices.Contains(ids, o.first.Installation) && len(ids) > 1
	})
	o.waits()
	if got, want := o.locked(), []string{o.terms[0].Installation, o.terms[1].Installation, middle}; !slices.Equal(got, want) {
		o.Errorf("locked while it waits for %s: got %v, want %v", middle, got, want)
	}
}

// locked are the leases that somebody has.
func (o *order) locked() []string {
	o.Helper()
	var ids string
	pgtest.Get(o, o.url, `SELECT coalesce(string_agg(id, ' ' ORDER BY id), '') FROM lease
 WHERE id NOT IN (SELECT id FROM (SELECT id FROM lease FOR NO KEY UPDATE SKIP LOCKED) free)`, &ids)
	return strings.Fields(ids)
}
