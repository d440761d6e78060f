package app

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
	// dropStep is what a person does about it.
	dropStep = "mend the target that is down, or raise delivery.backlog_max; leasehold deliveries list --state dropped shows what can be replayed"
)

// drops counts the deliveries that gave way to newer events, and tells of them: in the
// log when a spell begins, when it ends and at the stop, and by tell each time. It is
// in memory: each start counts from 0, and each node what it dropped itself.
type drops struct {
	tell func(deliveries int64)
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{} // a spell has begun

	mu    sync.Mutex // guards what follows
	total int64      // since the start
	spell int64      // in the spell that lasts; 0 = none does
	last  time.Time
}

func newDrops(tell func(int64), log *slog.Logger) *drops {
	return &drops{tell: tell, log: log, now: time.Now, wake: make(chan struct{}, 1)}
}

// add notes that deliveries gave way to what most bounds. It does not block.
func (d *drops) add(ctx context.Context, deliveries, most int64) {
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
	d.log.WarnContext(ctx, "oldest deliveries dropped", "deliveries", deliveries, "backlog_max", most, "on_full", "drop_oldest", "next_step", dropStep)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run ends each spell in the log once it is over, and says at the end of ctx how many
// gave way.
func (d *drops) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-d.wake:
		case <-ctx.Done():
		}
		for left := d.left(ctx); left > 0 && loop.Sleep(ctx, left) == nil; left = d.left(ctx) {
		}
	}
	if total, spell, _ := d.count(); total > 0 {
		d.sum(context.WithoutCancel(ctx), spell, total)
	}
	return nil
}

// left is how long the spell lasts at least; one that is over is told.
func (d *drops) left(ctx context.Context) time.Duration {
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

func (d *drops) sum(ctx context.Context, spell, total int64) {
	d.log.WarnContext(ctx, "deliveries given way", "deliveries", spell, "since_start", total, "next_step", dropStep)
}

func (d *drops) count() (total, spell int64, last time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total, d.spell, d.last
}

// troubles says that something gave way a short while ago.
func (d *drops) troubles() []admin.Trouble {
	total, _, last := d.count()
	if total == 0 || d.now().Sub(last) > dropTrouble {
		return nil
	}
	return []admin.Trouble{{
		What: "backlog", State: "dropping", NextStep: dropStep,
		Reason: fmt.Sprintf("%s since the start, the last %s", gaveWay(total), human.Ago(last)),
	}}
}

// gaveWay says how many deliveries did.
func gaveWay(n int64) string {
	if n == 1 {
		return "1 delivery gave way to newer events"
	}
	return fmt.Sprintf("%d deliveries gave way to newer events", n)
}
