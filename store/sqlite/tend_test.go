package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/store/maintenance"
)

func TestSweep(t *testing.T) {
	t.Run("a table that fails does not stop the others", func(t *testing.T) {
		now := time.Now()
		s := openTest(t, Options{Now: func() time.Time { return now }})
		term := grant(t, s, "i")
		take(t, s, term, "1")
		_, err := s.Mark(t.Context(), []delivery.Mark{{Term: term, Seq: 1, Target: "app", State: delivery.Delivered}})
		must(t, err)
		_, err = s.PutInstallation(t.Context(), admin.Installation{ID: "gone", Type: "heartbeat", Source: "api"}, 0)
		must(t, err)
		must(t, s.RemoveInstallation(t.Context(), "gone"))
		must(t, s.c.outside(t.Context(), func(w *writer) error {
			_, err := w.exec(`CREATE TEMP TRIGGER no BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
			return err
		}))
		now = now.Add(48 * time.Hour)
		swept, err := s.Sweep(t.Context(), maintenance.Retention{Events: time.Hour})
		wantText(t, err, "sweep events", "not this one")
		want(t, "installations", swept.Installations, 1)
		want(t, "events", count(t, s, "event"), 1)
	})

	t.Run("its pauses and its end are its context's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := openTest(t, Options{})
			term := grant(t, s, "i")
			for n := range 10 {
				b := batch(term, fmt.Sprint(n))
				b.Events[0].Targets = nil
				_, err := s.Accept(t.Context(), b)
				must(t, err)
			}
			<-time.After(48 * time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			swept, err := s.Sweep(ctx, maintenance.Retention{Events: time.Hour, Batch: 3, Pause: time.Hour})
			want(t, "ended", err != nil, true)
			want(t, "events of the first batch", swept.Events, 3)
			swept, err = s.Sweep(t.Context(), maintenance.Retention{Events: time.Hour, Batch: 3, Pause: time.Millisecond})
			must(t, err)
			want(t, "the rest", swept.Events, 7)
			want(t, "words", swept.String(), "deleted 7 events")
		})
	})
}

func TestUpkeep(t *testing.T) {
	t.Run("pages are given back where they are many, and kept where they are few", func(t *testing.T) {
		now := time.Now()
		s := openTest(t, Options{Now: func() time.Time { return now }})
		term := grant(t, s, "i")
		for n := range 30 {
			b := batch(term, fmt.Sprint(n))
			b.Events[0].Targets, b.Events[0].Body = nil, bytes.Repeat([]byte("x"), 1<<20)
			_, err := s.Accept(t.Context(), b)
			must(t, err)
		}
		full, err := s.Upkeep(t.Context())
		must(t, err)
		want(t, "given back of a full file", full.Vacuumed, 0)
		want(t, "log folded in", full.Bytes > 30<<20, true)
		now = now.Add(48 * time.Hour)
		_, err = s.Sweep(t.Context(), maintenance.Retention{Events: time.Hour})
		must(t, err)
		got, err := s.Upkeep(t.Context())
		must(t, err)
		want(t, "given back", got.Vacuumed > 1000, true)
		must(t, s.c.outside(t.Context(), checkpoint))
		if left := sizeOf(s.path); left > 17<<20 {
			t.Errorf("got %d bytes left, want what is better kept: about 16 MB", left)
		}
		again, err := s.Upkeep(t.Context())
		must(t, err)
		want(t, "given back again", again.Vacuumed, 0)
		must(t, quickCheck(t.Context(), s.path, s.db))
	})

	t.Run("the log is folded in while somebody reads, as far as that goes", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		tx, err := s.db.BeginTxx(t.Context(), nil)
		must(t, err)
		var n int
		must(t, tx.Get(&n, "SELECT count(*) FROM event"))
		for n := range 50 {
			take(t, s, term, fmt.Sprint(n))
		}
		began := time.Now()
		_, err = s.Upkeep(t.Context())
		must(t, err)
		if took := time.Since(began); took > busy {
			t.Errorf("got %v beside a reader, want no wait for it", took)
		}
		must(t, tx.Rollback())
	})
}

func TestAudit(t *testing.T) {
	t.Run("an event behind one of a later epoch of its lease is seen, once", func(t *testing.T) {
		s := openTest(t, Options{})
		insert := func(id, lease string, epoch int) {
			must(t, s.c.do(t.Context(), func(w *writer) error {
				_, err := w.exec(sqlEvent, lease, lease, id, epoch, "somebody", "message", "", "", 0, 0, []byte{})
				return err
			}))
		}
		insert("1", "i", 5)
		insert("2", "j", 9)
		insert("3", "i", 6)
		got, err := s.Audit(t.Context(), 0)
		must(t, err)
		want(t, "violations", len(got.Violations), 0)
		insert("4", "i", 5) // stale
		insert("5", "j", 9)
		got, err = s.Audit(t.Context(), got.Through)
		must(t, err)
		want(t, "violations", len(got.Violations), 1)
		want(t, "violation", got.Violations[0], maintenance.Violation{Lease: "i", Seq: 4, Epoch: 5, Before: 6})
		got, err = s.Audit(t.Context(), got.Through)
		must(t, err)
		want(t, "seen again", len(got.Violations)+got.Events, 0)
		got, err = s.Audit(t.Context(), 0)
		must(t, err)
		want(t, "seen from the beginning", len(got.Violations), 1)
	})
}
