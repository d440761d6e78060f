package backlog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/maintenance"
	"leasehold/store/sqlite"
)

// tally is a store that counts what the backlog asks of it.
type tally struct {
	store.Store
	measured, gaveWay int
}

func (c *tally) Waiting(ctx context.Context) (maintenance.Waiting, error) {
	c.measured++
	return c.Store.Waiting(ctx)
}

func (c *tally) GiveWay(ctx context.Context, bytes int64, reason string) (maintenance.GivenUp, error) {
	c.gaveWay++
	return c.Store.GiveWay(ctx, bytes, reason)
}

// dam is a backlog over a real store with one lease.
type dam struct {
	*Backlog
	t      *testing.T
	store  *tally
	term   channel.Term
	config *config.Config
	log    bytes.Buffer
	clock  time.Time
	woken  []string
	told   int64 // deliveries that gave way
	events int
}

func newDam(t *testing.T, most config.Size, onFull string) *dam {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	d := &dam{t: t, store: &tally{Store: s}, config: config.Default(), clock: time.Now()}
	d.config.Delivery.BacklogMax, d.config.Delivery.OnFull = most, onFull
	log := slog.New(slog.NewTextHandler(&d.log, nil))
	d.Backlog = New(d.store, func() *config.Config { return d.config }, func(lease string) { d.woken = append(d.woken, lease) },
		NewDrops(func(n int64) { d.told += n }, log), log)
	d.now = func() time.Time { return d.clock }
	d.drops.now = d.now
	row := admin.Installation{ID: "acme", Type: "x", Config: json.RawMessage("{}"), Enabled: true, Source: admin.SourceAPI, Fingerprint: "acme"}
	d.must(func() error { _, err := s.PutInstallation(t.Context(), row, 0); return err }())
	d.must(func() error {
		_, err := s.OpenSession(t.Context(), engine.SessionRequest{ID: "a", Instance: "a", TTL: time.Hour, Weight: 1})
		return err
	}())
	grants, err := s.Claim(t.Context(), "a", []string{"acme"})
	if err != nil || len(grants) != 1 {
		t.Fatalf("got %v and %v, want the lease", grants, err)
	}
	d.term = channel.Term{Installation: "acme", Owner: "a", Epoch: grants[0].Epoch}
	run, _, err := s.BeginTerm(t.Context(), d.term, "")
	d.must(err)
	d.term.Run = run
	return d
}

func (d *dam) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// hear accepts one event of 100 bytes for a target.
func (d *dam) hear(targets ...string) error {
	d.events++
	e := channel.Event{ID: fmt.Sprint(d.events), Type: "message"}
	_, err := d.Accept(d.t.Context(), engine.AcceptRequest{Term: d.term, Events: []engine.Heard{{Event: e, Body: bytes.Repeat([]byte("x"), 100), Targets: targets}}})
	return err
}

// deliver marks the first n of those that wait.
func (d *dam) deliver(n int) {
	d.t.Helper()
	items, err := d.Pending(d.t.Context(), "acme", 0, "", n)
	d.must(err)
	for _, i := range items {
		_, err := d.Mark(d.t.Context(), []delivery.Mark{{Term: d.term, Seq: i.Seq, Target: i.Target, State: delivery.Delivered, Count: true}})
		d.must(err)
	}
}

func (d *dam) waiting() int {
	items, err := d.Pending(d.t.Context(), "acme", 0, "", 1000)
	d.must(err)
	return len(items)
}

func (d *dam) said(what string) int { return strings.Count(d.log.String(), what) }

func TestBacklog(t *testing.T) {
	t.Run("without a bound nothing is measured", func(t *testing.T) {
		d := newDam(t, 0, "refuse")
		for range 50 {
			d.must(d.hear("app"))
		}
		d.must(d.Probe(t.Context()))
		if d.store.measured != 0 {
			t.Errorf("got %d measurements, want none", d.store.measured)
		}
	})

	t.Run("at the bound events are refused, told once, until a tenth is delivered", func(t *testing.T) {
		d := newDam(t, 1000, "refuse")
		for range 10 {
			d.must(d.hear("app"))
		}
		for range 5 {
			if err := d.hear("app"); !fault.Is(err, fault.Backlog) || !fault.Store(err) || !strings.Contains(err.Error(), "delivery.backlog_max, 1kB") {
				t.Fatalf("got %v, want it refused", err)
			}
		}
		if n := d.store.measured; n != 2 {
			t.Errorf("got %d measurements, want one at first and one at the bound", n)
		}
		d.must(d.hear()) // for nobody
		if d.waiting() != 10 || d.said("backlog full") != 1 || d.said("next_step=\"start the program") != 1 {
			t.Errorf("got %d waiting and the log %s, want ten and one line", d.waiting(), d.log.String())
		}
		if err := d.Probe(t.Context()); !fault.Is(err, fault.Backlog) {
			t.Errorf("got %v for a probe, want the same", err)
		}
		d.deliver(1)
		d.clock = d.clock.Add(time.Minute)
		d.must(d.Probe(t.Context()))
		d.must(d.hear("app"))
		if d.said("backlog has room again") != 1 {
			t.Errorf("got the log %s, want one line for the room", d.log.String())
		}
	})

	t.Run("what is delivered as it comes never meets the bound", func(t *testing.T) {
		d := newDam(t, 1000, "refuse")
		for range 200 {
			d.must(d.hear("app"))
			d.deliver(1)
		}
		if n := d.store.measured; n == 0 || n > 30 {
			t.Errorf("got %d measurements for 200 events, want one for some ten", n)
		}
	})

	t.Run("a backlog of before the start counts, and one event that is larger than the bound goes alone", func(t *testing.T) {
		d := newDam(t, 0, "refuse")
		for range 5 {
			d.must(d.hear("app"))
		}
		d.config.Delivery.BacklogMax = 50
		if err := d.hear("app"); !fault.Is(err, fault.Backlog) {
			t.Errorf("got %v, want it refused", err)
		}
		d.deliver(5)
		d.clock = d.clock.Add(time.Minute)
		d.must(d.Probe(t.Context()))
		d.must(d.hear("app"))
	})

	t.Run("a bound that is taken away ends the refusal", func(t *testing.T) {
		d := newDam(t, 100, "refuse")
		d.must(d.hear("app"))
		if err := d.hear("app"); !fault.Is(err, fault.Backlog) {
			t.Fatalf("got %v, want it refused", err)
		}
		d.config.Delivery.BacklogMax = 0
		d.must(d.Probe(t.Context()))
		d.must(d.hear("app"))
	})

	t.Run("the oldest give way instead, down to nine tenths, told once", func(t *testing.T) {
		d := newDam(t, 1000, "drop_oldest")
		for range 40 {
			d.must(d.hear("app", "log"))
		}
		items, err := d.Pending(t.Context(), "acme", 0, "", 1000)
		d.must(err)
		if n := len(items) / 2; n < 9 || n > 10 {
			t.Errorf("got %d events waiting, want nine or ten", n)
		}
		if last := items[len(items)-1].Seq; last != 40 {
			t.Errorf("got %d the newest, want the last", last)
		}
		gone, err := d.Deliveries(t.Context(), admin.DeliveryQuery{State: "dropped", Limit: 500})
		d.must(err)
		if len(gone)+len(items) != 80 || d.said("oldest deliveries dropped") != 1 || !slices.Contains(d.woken, "acme") {
			t.Fatalf("got %d dropped, woken %v and the log %s, want the others dropped, told once, and the lease woken", len(gone), d.woken, d.log.String())
		}
		if total, _, last := d.drops.Count(); total != int64(len(gone)) || d.told != total || !last.Equal(d.clock) {
			t.Errorf("got %d counted and %d told of %d, want all of them", total, d.told, len(gone))
		}
		if gone[0].LastError != Why {
			t.Errorf("got %+v, want the reason", gone[0])
		}
		d.clock = d.clock.Add(time.Hour)
		for range 10 {
			d.must(d.hear("app"))
		}
		if d.said("oldest deliveries dropped") != 2 {
			t.Errorf("got the log %s, want the next spell told", d.log.String())
		}
		if want := fmt.Sprintf(`msg="deliveries given way" deliveries=%d since_start=%d`, len(gone), len(gone)); d.said(want) != 1 {
			t.Errorf("got the log %s, want the spell before with its count", d.log.String())
		}
	})

	t.Run("the engine's own questions of a store reach it", func(t *testing.T) {
		d := newDam(t, 0, "refuse")
		d.must(d.CheckFiles())
		if !d.Sole() {
			t.Error("got a store of several, want the only one")
		}
		if d.Watch(t.Context()) == nil {
			t.Error("got no watch, want one")
		}
	})
}
