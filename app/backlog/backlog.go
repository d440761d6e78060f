// Package backlog keeps what waits for delivery within a bound, and counts what
// gave way for it.
package backlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/maintenance"
)

const (
	// measureAgain is the least time between two measurements of a backlog that is
	// nearly full, and measureShare how many times as long as one took it is at least: a
	// backlog of millions takes a second to measure, and its deliveries want the disk.
	measureAgain, measureShare = time.Second, 20
)

// Why is what a dropped delivery says.
const Why = "gave way to newer events: what waits passed delivery.backlog_max"

var errBacklog = fault.Errorf(fault.Backlog, "the backlog is full")

// Backlog is the store as the engine accepts through it: what waits for delivery is
// kept within delivery.backlog_max. It adds up what is accepted and, when that passes
// the bound, measures what really waits; below the bound, and at rest, it reads and
// writes nothing. Several nodes over one store each measure the whole.
//
// At the bound, on_full = "refuse" answers like a disk that is full: nothing is
// acknowledged to a platform, the engine closes the connections and asks by Probe
// when to open them. What waits is delivered meanwhile. "drop_oldest" lets the oldest
// give way.
type Backlog struct {
	store.Store
	config func() *config.Config
	wake   func(lease string) // its deliveries have changed
	drops  *Drops             // counts what gave way
	log    *slog.Logger
	now    func() time.Time

	mu       sync.Mutex // guards what follows; it is held while the backlog is measured
	measured time.Time  // zero = never
	took     time.Duration
	found    int64 // bytes that waited then
	bytes    int64 // the same, and accepted since
	full     bool  // refusing
}

var _ engine.Store = (*Backlog)(nil)

// New makes a Backlog over s. wake is told the leases whose deliveries have changed.
func New(s store.Store, c func() *config.Config, wake func(string), d *Drops, log *slog.Logger) *Backlog {
	return &Backlog{Store: s, config: c, wake: wake, drops: d, log: log, now: time.Now}
}

// CheckFiles passes on what the engine asks a store that can tell.
func (b *Backlog) CheckFiles() error {
	if c, ok := b.Store.(interface{ CheckFiles() error }); ok {
		return c.CheckFiles() //nolint:wrapcheck // it is the store's word
	}
	return nil
}

// Accept implements engine.Store. A backlog that is full is fault.Backlog.
func (b *Backlog) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	size := int64(0)
	for i := range r.Events {
		if len(r.Events[i].Targets) > 0 {
			size += int64(len(r.Events[i].Body))
		}
	}
	if size > 0 {
		if err := b.admit(ctx, size); err != nil {
			return engine.Accepted{}, err
		}
	}
	return b.Store.Accept(ctx, r)
}

// Probe implements engine.Store.
func (b *Backlog) Probe(ctx context.Context) error {
	if err := b.eased(ctx); err != nil {
		return err
	}
	return b.Store.Probe(ctx)
}

// admit makes room for size bytes, or refuses them.
func (b *Backlog) admit(ctx context.Context, size int64) error {
	d := b.config().Delivery
	most := int64(d.BacklogMax)
	if most <= 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full || b.measured.IsZero() || b.bytes+size > most {
		if err := b.measure(ctx, most); err != nil {
			return err
		}
	}
	room := most
	if b.full {
		room = ease(most)
	}
	switch {
	case b.bytes+size <= room, b.bytes == 0: // one that is larger than the bound alone has to go some way
		b.relent(ctx)
	case d.OnFull == "drop_oldest":
		b.relent(ctx)
		if err := b.giveWay(ctx, b.bytes+size-ease(most), most); err != nil {
			return err
		}
	default:
		return b.refuse(ctx, most)
	}
	b.bytes += size
	return nil
}

// eased is nil when a backlog that was full has room again.
func (b *Backlog) eased(ctx context.Context) error {
	d := b.config().Delivery
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.full {
		return nil
	}
	most := int64(d.BacklogMax)
	if most > 0 && d.OnFull != "drop_oldest" {
		if err := b.measure(ctx, most); err != nil {
			return err
		}
		if b.bytes > ease(most) {
			return b.refuse(ctx, most)
		}
	}
	b.relent(ctx)
	return nil
}

// ease is below what the backlog has room again: not at the bound itself, where each
// delivered event would let one in and end in the next refusal.
func ease(most int64) int64 { return most - most/10 }

// measure asks the store how much waits. One that was nearly full a moment ago is
// taken to be so still; else a tenth of the bound or more was accepted since.
func (b *Backlog) measure(ctx context.Context, most int64) error {
	began := b.now()
	if b.found > ease(most) && began.Sub(b.measured) < max(measureAgain, measureShare*b.took) {
		return nil
	}
	waiting, err := b.Waiting(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what it was about
	}
	b.measured = b.now()
	b.took, b.found, b.bytes = b.measured.Sub(began), waiting.Bytes, waiting.Bytes
	return nil
}

// refuse says that the backlog is full, in the log once.
func (b *Backlog) refuse(ctx context.Context, most int64) error {
	if !b.full {
		b.full = true
		b.log.WarnContext(ctx, "backlog full", "bytes", b.bytes, "backlog_max", most, "on_full", "refuse", "next_step", admin.StoreStep(errBacklog))
	}
	return fault.Errorf(fault.Backlog, "what waits for delivery has reached delivery.backlog_max, %s; %s", config.Size(most), admin.StoreStep(errBacklog))
}

// relent ends a refusal.
func (b *Backlog) relent(ctx context.Context) {
	if b.full {
		b.full = false
		b.log.InfoContext(ctx, "backlog has room again", "bytes", b.bytes)
	}
}

// giveWay lets the oldest go until as many bytes are free.
func (b *Backlog) giveWay(ctx context.Context, bytes, most int64) error {
	for bytes > 0 {
		gone, err := b.GiveWay(ctx, bytes, Why)
		if err != nil {
			return err //nolint:wrapcheck // it says what it was about
		}
		if gone.Deliveries > 0 {
			b.drops.add(ctx, int64(gone.Deliveries), most)
		}
		b.forget(gone)
		bytes -= gone.Bytes
		if gone.Events == 0 {
			b.bytes, b.found = 0, 0 // nothing waits: what was added up is delivered
			break
		}
	}
	return nil
}

// forget takes what gave way off what waits, and has its deliveries forgotten.
func (b *Backlog) forget(gone maintenance.GivenUp) {
	b.bytes, b.found = max(0, b.bytes-gone.Bytes), max(0, b.found-gone.Bytes)
	for _, lease := range gone.Leases {
		b.wake(lease)
	}
}
