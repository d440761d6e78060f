package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/eventid"
)

const (
	benchLeases  = 20
	benchGroup   = groupRows / 2 // an event and its delivery are two rows
	benchPayload = 1024
	// benchSlice is how many events each side takes before it is the other's turn: a
	// third of a second, so that a neighbour's work hits both.
	benchSlice = 10_000
)

// BenchmarkAccept prints events accepted per second, and the ratio to a bare loop
// that runs the same statements: the same schema, indexes, fence and payload, as
// many events to a commit, each in a database of its own. The two take turns, and
// the medians over all turns count, so give it some: -benchtime=11x.
func BenchmarkAccept(b *testing.B) {
	for _, load := range []struct{ producers, batch int }{{20, 32}, {256, 1}} {
		b.Run(fmt.Sprintf("%d producers of %d", load.producers, load.batch), func(b *testing.B) {
			store, bare := newAcceptBench(b, load.producers, load.batch), newBareBench(b, load.batch)
			store.slice(b) // neither side begins with an empty file, cold statements or a log that grows
			bare.slice(b)
			var rates, bares, ratios []float64
			for b.Loop() {
				r, o := store.slice(b), bare.slice(b)
				rates, bares, ratios = append(rates, r), append(bares, o), append(ratios, r/o)
			}
			b.ReportMetric(middle(rates), "events/s")
			b.ReportMetric(middle(bares), "bare/s")
			b.ReportMetric(middle(ratios), "ratio")
		})
	}
}

// BenchmarkMixed prints how many events per second the store takes through their
// whole life: accepted, read, and marked as delivered, each at the same time as
// others. It is the most that a delivery which costs nothing could reach.
func BenchmarkMixed(b *testing.B) {
	a := newAcceptBench(b, 20, 32)
	a.slice(b)
	var rates []float64
	for b.Loop() {
		began, from := time.Now(), a.marked
		var wg sync.WaitGroup
		wg.Go(func() { a.slice(b) })
		a.mark(b, from+benchSlice)
		wg.Wait()
		rates = append(rates, float64(a.marked-from)/time.Since(began).Seconds())
	}
	b.ReportMetric(middle(rates), "events/s")
}

func middle(all []float64) float64 {
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

func benchEvent(n int64) engine.Heard {
	h := heard(fmt.Sprintf("Ev%012d", n), "app")
	h.Body = benchBody
	return h
}

var benchBody = []byte(`{"text":"` + strings.Repeat("x", benchPayload-11) + `"}`)

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

// acceptBench is producers that each wait for a batch before they bring the next.
type acceptBench struct {
	store            *Store
	terms            []channel.Term
	producers, batch int
	next             atomic.Int64

	marked int              // deliveries so far
	behind map[string]int64 // by lease: up to which event
}

func newAcceptBench(b *testing.B, producers, batch int) *acceptBench {
	b.Helper()
	a := &acceptBench{producers: producers, batch: batch, behind: map[string]int64{}}
	a.store, a.terms = benchStore(b)
	return a
}

// slice has events accepted, and returns how many there were per second.
func (a *acceptBench) slice(b *testing.B) float64 {
	began, until := time.Now(), a.next.Load()+benchSlice
	var wg sync.WaitGroup
	for p := range a.producers {
		wg.Go(func() {
			for {
				last := a.next.Add(int64(a.batch))
				if last > until {
					a.next.Add(-int64(a.batch))
					return
				}
				r := engine.AcceptRequest{Term: a.terms[p%len(a.terms)], Identity: "bot"}
				for n := range a.batch {
					r.Events = append(r.Events, benchEvent(last-int64(n)))
				}
				if _, err := a.store.Accept(b.Context(), r); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	before := until - benchSlice
	wg.Wait()
	return float64(a.next.Load()-before) / time.Since(began).Seconds()
}

// mark reads what waits and marks it as delivered, until so many were.
func (a *acceptBench) mark(b *testing.B, until int) {
	for turn := 0; a.marked < until; turn++ {
		t := a.terms[turn%len(a.terms)]
		items, err := a.store.Pending(b.Context(), t.Installation, a.behind[t.Installation], "", 256)
		must(b, err)
		var seqs []int64
		var marks []delivery.Mark
		for _, i := range items {
			seqs = append(seqs, i.Seq)
			marks = append(marks, delivery.Mark{Term: t, Seq: i.Seq, Target: i.Target, State: delivery.Delivered, Count: true})
		}
		if len(items) == 0 {
			continue
		}
		a.behind[t.Installation] = seqs[len(seqs)-1] + 1
		events, err := a.store.Payloads(b.Context(), seqs)
		must(b, err)
		answers, err := a.store.Mark(b.Context(), marks)
		must(b, errors.Join(append(answers, err)...))
		a.marked += len(events)
	}
}

// bareBench is a loop of prepared statements on one connection, and nothing else.
type bareBench struct {
	terms                                 []channel.Term
	batch                                 int64 // events of a lease in a row
	begin, fence, event, delivery, commit *sql.Stmt
	next                                  int64
}

func newBareBench(b *testing.B, batch int) *bareBench {
	b.Helper()
	s, terms := benchStore(b)
	path := filepath.Join(b.TempDir(), "bare.db")
	must(b, s.c.outside(b.Context(), func(w *writer) error {
		_, err := w.exec("VACUUM INTO $1", path)
		return err
	}))
	must(b, makeWAL(b.Context(), path))
	db, err := sql.Open("sqlite", dsn(path, dsnWrite))
	must(b, err)
	b.Cleanup(func() { must(b, db.Close()) })
	conn, err := db.Conn(b.Context())
	must(b, err)
	b.Cleanup(func() { must(b, conn.Close()) })
	stmt := func(query string) *sql.Stmt {
		st, err := conn.PrepareContext(background, query)
		must(b, err)
		b.Cleanup(func() { must(b, st.Close()) })
		return st
	}
	return &bareBench{
		terms: terms, batch: int64(batch), begin: stmt("BEGIN IMMEDIATE"), fence: stmt(sqlFenceRun), event: stmt(sqlEvent),
		delivery: stmt(sqlDelivery), commit: stmt("COMMIT"),
	}
}

// slice inserts events in groups, and returns how many there were per second. The
// events are there before: making them is the callers' work.
func (l *bareBench) slice(b *testing.B) float64 {
	events := make([]engine.Heard, benchSlice/benchGroup*benchGroup)
	for i := range events {
		events[i] = benchEvent(l.next + int64(i))
	}
	began := time.Now()
	for group := range slices.Chunk(events, benchGroup) {
		if err := l.group(group); err != nil {
			b.Fatal(err)
		}
	}
	return float64(len(events)) / time.Since(began).Seconds()
}

// group is one transaction. A lease that was looked at once in it holds until its
// end, as nobody else writes meanwhile.
func (l *bareBench) group(events []engine.Heard) error {
	if _, err := l.begin.ExecContext(background); err != nil {
		return err
	}
	for _, t := range l.terms {
		var one int
		if err := l.fence.QueryRowContext(background, t.Installation, t.Epoch, t.Owner, t.Run).Scan(&one); err != nil {
			return err
		}
	}
	now := time.Now().UnixMilli()
	for _, e := range events {
		t := &l.terms[l.next/l.batch%benchLeases]
		l.next++
		res, err := l.event.ExecContext(background, t.Installation, t.Installation, e.Event.ID, t.Epoch, t.Owner, e.Event.Type,
			e.Event.Conversation.ID, "", int64(1000), now, e.Body)
		if err != nil {
			return err
		}
		seq, err := res.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := l.delivery.ExecContext(background, seq, "app", t.Installation, t.Epoch, eventid.NewWebhook(seq), now); err != nil {
			return err
		}
	}
	_, err := l.commit.ExecContext(background)
	return err
}

// BenchmarkList measures the reading of ten thousand installations with their
// leases, and the answer that nothing changed, which is what a node at rest gets.
func BenchmarkList(b *testing.B) {
	const installations = 10_000
	s := openTest(b, Options{})
	rows := make([]admin.Installation, installations)
	for i := range rows {
		rows[i] = admin.Installation{
			ID: fmt.Sprintf("installation-%05d", i), Type: "websocket", Enabled: true, Fingerprint: "f",
			Config: []byte(`{"url":"ws://platform.example.org/bot","ready_when":{"pointer":"/type","equals":"hello"}}`),
		}
	}
	_, _, _, err := s.Reconcile(b.Context(), rows)
	must(b, err)
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			snap, err := s.List(b.Context(), 0)
			if err != nil || len(snap.Installations) != installations || len(snap.Leases) != installations {
				b.Fatalf("got %d installations, %v, want %d", len(snap.Installations), err, installations)
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		snap, err := s.List(b.Context(), 0)
		must(b, err)
		for b.Loop() {
			again, err := s.List(b.Context(), snap.Version)
			if err != nil || !again.Unchanged {
				b.Fatalf("got unchanged = %v, %v, want true", again.Unchanged, err)
			}
		}
	})
}

// BenchmarkPending prints what reading one row of a backlog costs, page by page as
// the dispatcher reads it.
func BenchmarkPending(b *testing.B) {
	const rows, page = 8192, 1024
	s, terms := benchStore(b)
	for n := range int64(rows / 64) {
		r := engine.AcceptRequest{Term: terms[0], Identity: "bot"}
		for i := range int64(64) {
			r.Events = append(r.Events, benchEvent(n*64+i))
		}
		if _, err := s.Accept(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	read := 0
	began := time.Now()
	for b.Loop() {
		seq, target := int64(0), ""
		for range rows / page {
			items, err := s.Pending(b.Context(), terms[0].Installation, seq, target, page)
			if err != nil || len(items) != page {
				b.Fatalf("got %d rows and %v, want a page", len(items), err)
			}
			seq, target = items[page-1].Seq, items[page-1].Target
			read += page
		}
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(read), "ns/row")
}
