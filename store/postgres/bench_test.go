package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/loop"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// benchLeases is a node that holds as much as one is meant to.
const benchLeases = 10_000

// BenchmarkRest prints what a tick costs the server when nothing happens: a node
// with ten thousand connected installations, and the design that it was chosen over,
// in which each lease has an expiry in its own row that its holder moves on, one
// update each. Both are on one server, which syncs as one in earnest does. An
// iteration is a tick of five seconds: -benchtime=12x is a minute.
func BenchmarkRest(b *testing.B) {
	// Without the vacuums, which would come at any moment, and for the other design more often.
	server := pgtest.New(b, "fsync=on", "full_page_writes=on", "synchronous_commit=on", "autovacuum=off", "shared_preload_libraries=pg_stat_statements")
	server.Exec(b, "CREATE EXTENSION pg_stat_statements")
	url := server.Database(b)
	s := open(b, url, postgres.Options{})
	ids := fill(b, s)
	stop := idleNode(b, s)
	settle(b, server, url)

	before := spent(b, server)
	for b.Loop() {
		if err := loop.Sleep(b.Context(), engine.DefaultTiming().RenewEvery); err != nil {
			b.Fatal(err)
		}
	}
	ours := spent(b, server).since(before)
	stop()

	settle(b, server, url)
	before = spent(b, server)
	began := time.Now()
	perLease(b, url, ids)
	took := time.Since(began)
	theirs := spent(b, server).since(before)

	n := float64(b.N)
	b.ReportMetric(float64(ours.statements)/n, "statements/tick")
	b.ReportMetric(float64(ours.wal)/n, "wal-B/tick")
	b.ReportMetric(float64(theirs.statements), "other-statements/tick")
	b.ReportMetric(float64(theirs.wal), "other-wal-B/tick")
	b.ReportMetric(float64(took.Milliseconds()), "other-ms/tick")
}

// fill makes the installations and returns their ids.
func fill(b *testing.B, s *postgres.Store) (ids []string) {
	b.Helper()
	rows := make([]admin.Installation, benchLeases)
	for n := range rows {
		ids = append(ids, fmt.Sprintf("installation-%05d", n))
		rows[n] = admin.Installation{ID: ids[n], Type: "idle", Enabled: true, Config: []byte("{}")}
	}
	if _, _, _, err := s.Reconcile(b.Context(), rows); err != nil {
		b.Fatal(err)
	}
	return ids
}

// idleNode runs the engine as it ships, with channels that hear nothing, and returns
// once all of them are connected.
func idleNode(b *testing.B, s *postgres.Store) (stop func()) {
	b.Helper()
	types, err := channel.NewTypes(nil, channel.Define(channel.Definition[struct{}]{
		Name: "idle", Summary: "hears nothing",
		New: func(context.Context, struct{}) (channel.Channel, error) { return idle{}, nil },
	}))
	if err != nil {
		b.Fatal(err)
	}
	node, err := engine.New(s, types, nobody{}, engine.Options{
		Instance: "bench", Host: "boot/1", Connect: engine.Connect{PerTypeRate: 1e6, InFlight: benchLeases},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := node.Run(ctx); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { cancel(); wg.Wait() })
	for connected := 0; connected < benchLeases; connected = node.Status().Connected {
		if err := loop.Sleep(ctx, time.Second); err != nil {
			b.Fatal(err)
		}
	}
	return func() {
		if n := node.Status().Connected; n != benchLeases {
			b.Errorf("got %d connected, want %d all the time", n, benchLeases)
		}
		cancel()
		wg.Wait()
	}
}

type idle struct{}

func (idle) Run(ctx context.Context, l *channel.Link) error {
	l.Ready(channel.Info{})
	<-ctx.Done()
	return nil
}

// nobody holds leases and has nothing to deliver.
type nobody struct{}

func (nobody) Hold(channel.Term)                             {}
func (nobody) Live(channel.Term, channel.Sender)             {}
func (nobody) Targets(channel.Term, *channel.Event) []string { return nil }
func (nobody) Accepted(channel.Term, int64)                  {}
func (nobody) Drop(context.Context, channel.Term)            {}
func (nobody) Ask(context.Context, channel.Term, channel.Event) (json.RawMessage, bool) {
	return nil, false
}

// settle waits until nothing is written any more, but for what a tick writes, and
// has the server do at once what it would do later.
func settle(b *testing.B, server *pgtest.Server, url string) {
	b.Helper()
	const quiet = 64 << 10 // in a second
	for last := int64(-1); ; {
		now := spent(b, server).wal
		if last >= 0 && now-last < quiet {
			break
		}
		last = now
		if err := loop.Sleep(b.Context(), time.Second); err != nil {
			b.Fatal(err)
		}
	}
	pgtest.Exec(b, url, "VACUUM ANALYZE")
	server.Exec(b, "CHECKPOINT")
}

// perLease is a tick of the other design, each update a transaction. not_before is as
// wide as an expiry and stands in the same row.
func perLease(b *testing.B, url string, ids []string) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	expiry := time.Now().Add(time.Minute).UnixMilli()
	for _, id := range ids {
		if _, err := conn.Exec(b.Context(), "UPDATE lease SET not_before = $1 WHERE id = $2", expiry, id); err != nil {
			b.Fatal(err)
		}
	}
}

// cost is what a server has counted since it started.
type cost struct{ statements, wal int64 }

func (c cost) since(before cost) cost {
	return cost{c.statements - before.statements, c.wal - before.wal}
}

// spent asks from another database than the one that is measured: the statements are
// that one's alone.
func spent(b *testing.B, server *pgtest.Server) (c cost) {
	b.Helper()
	pgtest.Get(b, server.URL("postgres"), `SELECT coalesce(sum(s.calls), 0)::bigint, (pg_current_wal_lsn() - '0/0')::bigint
  FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname LIKE 'test%'`, &c.statements, &c.wal)
	return c
}
