package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/eventid"
)

const (
	benchLeases  = 20
	benchGroup   = 256
	benchPayload = 1024
)

// benchEvents is how many events a measurement takes: a second's worth.
const benchEvents = 40_000

// benchStore opens a store with leases whose terms run.
func benchStore(b *testing.B) (*Store, []channel.Term) {
	b.Helper()
	s := openTest(b, Options{})
	terms := make([]channel.Term, benchLeases)
	for i := range terms {
		terms[i] = grant(b, s, fmt.Sprintf("bench-%d", i))
	}
	return s, terms
}

func benchEvent(n int64) engine.Heard {
	h := heard(fmt.Sprintf("Ev%012d", n), "app")
	h.Body = benchBody
	return h
}

var benchBody = []byte(`{"text":"` + strings.Repeat("x", benchPayload-11) + `"}`)

// acceptRate measures events accepted per second from producers that each wait
// for a batch before they bring the next.
func acceptRate(b *testing.B, producers, batch int) float64 {
	b.Helper()
	s, terms := benchStore(b)
	ctx := context.WithoutCancel(b.Context()) // a context that can end costs each statement a goroutine
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for p := range producers {
		wg.Go(func() {
			for {
				first := next.Add(int64(batch)) - int64(batch)
				if first >= benchEvents {
					return
				}
				r := engine.AcceptRequest{Term: terms[p%len(terms)], Identity: "bot"}
				for n := range batch {
					r.Events = append(r.Events, benchEvent(first+int64(n)))
				}
				if _, err := s.Accept(ctx, r); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return benchEvents / time.Since(began).Seconds()
}

// bareRate measures the same rows written by one loop of prepared statements:
// the same schema, indexes, fence and payload, 256 events to a commit.
func bareRate(b *testing.B) float64 {
	b.Helper()
	s, terms := benchStore(b)
	ctx := context.WithoutCancel(b.Context())
	path := filepath.Join(b.TempDir(), "bare.db")
	copied := s.c.outside(b.Context(), func(w *writer) error {
		_, err := w.exec("VACUUM INTO $1", path)
		return err
	})
	if copied != nil {
		b.Fatal(copied)
	}
	if err := makeWAL(b.Context(), path); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(path, dsnWrite))
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	defer func() { _ = db.Close() }()
	stmt := func(query string) *sql.Stmt {
		st, err := db.PrepareContext(b.Context(), query)
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
	fence, event, deliver := stmt(sqlFenceRun), stmt(sqlEvent), stmt(sqlDelivery)
	began := time.Now()
	for n := int64(0); n < benchEvents; n += benchGroup {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			b.Fatal(err)
		}
		fence, event, deliver := tx.StmtContext(ctx, fence), tx.StmtContext(ctx, event), tx.StmtContext(ctx, deliver) //nolint:sqlclosecheck // the transaction closes them
		for i := range int64(benchGroup) {
			t, e := terms[(n+i)%benchLeases], benchEvent(n+i)
			var one int
			if err := fence.QueryRowContext(ctx, t.Installation, t.Epoch, t.Owner, t.Run).Scan(&one); err != nil {
				b.Fatal(err)
			}
			now := time.Now().UnixMilli()
			res, err := event.ExecContext(ctx, t.Installation, t.Installation, e.Event.ID, t.Epoch, t.Owner, e.Event.Type, e.Event.Conversation.ID, "", int64(1000), now, e.Body)
			if err != nil {
				b.Fatal(err)
			}
			seq, err := res.LastInsertId()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := deliver.ExecContext(ctx, seq, "app", t.Installation, t.Epoch, eventid.NewWebhook(seq), now); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return benchEvents / time.Since(began).Seconds()
}

// BenchmarkAccept prints events accepted per second and their ratio to a bare
// insert loop of the same rows in the same process.
func BenchmarkAccept(b *testing.B) {
	for _, load := range []struct{ producers, batch int }{{20, 32}, {256, 1}, {64, 1}} {
		b.Run(fmt.Sprintf("%d producers of %d", load.producers, load.batch), func(b *testing.B) {
			for b.Loop() {
				bare := bareRate(b)
				rate := acceptRate(b, load.producers, load.batch)
				b.ReportMetric(rate, "events/s")
				b.ReportMetric(bare, "bare/s")
				b.ReportMetric(rate/bare, "ratio")
			}
		})
	}
}
