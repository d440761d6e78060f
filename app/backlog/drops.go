package backlog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"leasehold/admin"
	"leasehold/internal/human"
	"leasehold/internal/loop"
)

const (
	// dropSpell is how long nothing must have given way until a spell of it is over:
	// one line in the log begins it, and one with its count ends it.
	dropSpell = 10 * time.Minute
	// dropTrouble is how long the box is not well after something gave way: what is
	// lost does not come back, and whoever looks once in an hour is to see it.
	dropTrouble = time.Hour
	// NextStep is what a person does about it.
	NextStep = "mend the target that is down, or raise delivery.backlog_max; leasehold deliveries list --state dropped shows what can be replayed"
)

// Drops counts the deliveries that gave way to newer events, and tells of them: in the
// log when a spell begins, when it ends and at the stop, and by tell each time. It is
// in memory: each start counts from 0, and each node what it dropped itself.
type Drops struct {
	tell func(deliveries int64)
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{} // a spell has begun

	mu    sync.Mutex // guards what follows
	total int64      // since the start
	spell int64      // in the spell that lasts; 0 = none does
	last  time.Time
}

// NewDrops makes a Drops that has counted nothing. tell is called for each time, and
// must not block.
func NewDrops(tell func(int64), log *slog.Logger) *Drops {
	return &Drops{tell: tell, log: log, now: time.Now, wake: make(chan struct{}, 1)}
}

// add notes that deliveries gave way to what most bounds. It does not block.
func (d *Drops) add(ctx context.Context, deliveries, most int64) {
	d.left(ctx) // the spell before may be over
	d.mu.Lock()
	fresh := d.spell == 0
	d.total += deliveries
	d.spell += deliveries
	d.last = d.now()
	d.mu.Unlock()
	d.tell(deliveries)
	if !fresh {
		return
	}
	d.log.WarnContext(ctx, "oldest deliveries dropped", "deliveries", deliveries, "backlog_max", most, "on_full", "drop_oldest", "next_step", NextStep)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run ends each spell in the log once it is over, and says at the end of ctx how many
// gave way.
func (d *Drops) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-d.wake:
		case <-ctx.Done():
		}
		for left := d.left(ctx); left > 0 && loop.Sleep(ctx, left) == nil; left = d.left(ctx) {
		}
	}
	if total, spell, _ := d.Count(); total > 0 {
		d.sum(context.WithoutCancel(ctx), spell, total)
	}
	return nil
}

// left is how long the spell lasts at least; one that is over is told.
func (d *Drops) left(ctx context.Context) time.Duration {
	d.mu.Lock()
	if d.spell == 0 {
		d.mu.Unlock()
		return 0
	}
	left := dropSpell - d.now().Sub(d.last)
	spell, total := d.spell, d.total
	if left <= 0 {
		d.spell = 0
	}
	d.mu.Unlock()
	if left <= 0 {
		d.sum(ctx, spell, total)
	}
	return left
}

func (d *Drops) sum(ctx context.Context, spell, total int64) {
	d.log.WarnContext(ctx, "deliveries given way", "deliveries", spell, "since_start", total, "next_step", NextStep)
}

// Count is how many deliveries gave way since the start and in the spell that
// lasts, and when the last did; zero = none.
func (d *Drops) Count() (total, spell int64, last time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total, d.spell, d.last
}

// Troubles says that something gave way a short while ago.
func (d *Drops) Troubles() []admin.Trouble {
	total, _, last := d.Count()
	if total == 0 || d.now().Sub(last) > dropTrouble {
		return nil
	}
	return []admin.Trouble{{
		What: "backlog", State: "dropping", NextStep: NextStep,
		Reason: fmt.Sprintf("%s since the start, the last %s", Words(total), human.Ago(last)),
	}}
}

// Words says how many deliveries did.
func Words(n int64) string {
	if n == 1 {
		return "1 delivery gave way to newer events"
	}
	return fmt.Sprintf("%d deliveries gave way to newer events", n)
}
