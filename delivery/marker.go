package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	// markLinger is how long the first outcome waits for others to share a commit
	// with. What is not stored is delivered twice when we are killed; 20 ms of that
	// cost little, and fifty commits a second little, too.
	markLinger = 20 * time.Millisecond
	// markBatch is how many outcomes one call to the store has at most.
	markBatch = 256
	// markTimeout bounds one call. Marking again is safe.
	markTimeout = 10 * time.Second
	// markRetryMin and markRetryMax bound the wait after a call that failed.
	markRetryMin, markRetryMax = 100 * time.Millisecond, 5 * time.Second
	// unmarkedMax is how many outcomes may wait for the store before nothing more
	// is sent.
	unmarkedMax = 2048
	// lastMarks bounds the last call, when the dispatcher stops.
	lastMarks = 2 * time.Second
)

// outcome is the end of one dispatch, on its way to the store.
type outcome struct {
	hold  *hold
	entry *entry // nil: it is not in memory any more
	row   row
	mark  Mark
}

// push hands an outcome to the marker. Its entry, if any, is busy until then.
func (d *Dispatcher) push(o *outcome) {
	o.mark.Term, o.mark.Seq, o.mark.Target = o.hold.term, o.row.seq, o.row.target
	d.outcomes = append(d.outcomes, o)
	d.unmarked++
	d.ring(d.mark)
	if o.hold.leaving || len(d.outcomes) >= markBatch && d.sick == nil {
		d.ring(d.flush)
	}
}

// runMarks stores outcomes until ctx ends, and then what is left, once.
func (d *Dispatcher) runMarks(ctx context.Context) {
	for fails := 0; ; {
		select {
		case <-ctx.Done():
			for batch := d.batch(); len(batch) > 0; batch = d.batch() {
				if d.store(ctx, batch, lastMarks) != nil {
					return
				}
			}
			return
		case <-d.mark:
		}
		wait := markLinger
		if fails > 0 {
			wait = min(markRetryMax, markRetryMin<<min(fails-1, 10))
		}
		d.linger(ctx, wait)
		batch := d.batch()
		switch {
		case len(batch) == 0: // those that were refused were dropped with their lease
			fails = 0
		case d.store(ctx, batch, markTimeout) != nil:
			fails++
		default:
			fails = 0
		}
	}
}

// linger lets a group form, unless there is one already or somebody waits for it.
func (d *Dispatcher) linger(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.flush:
	case <-ctx.Done():
	}
}

// batch takes the oldest outcomes. There is never more than one of a delivery on
// its way, so a store may write them in one statement.
func (d *Dispatcher) batch() []*outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(markBatch, len(d.outcomes))
	batch := slices.Clone(d.outcomes[:n])
	d.outcomes = slices.Delete(d.outcomes, 0, n)
	return batch
}

// store writes a batch. When the store fails nothing is known of it: it is kept
// and written again, and nothing new is sent until that succeeds, so that a full
// disk does not turn into a hundred copies of each event.
func (d *Dispatcher) store(ctx context.Context, batch []*outcome, timeout time.Duration) error {
	marks := make([]Mark, len(batch))
	for i, o := range batch {
		marks[i] = o.mark
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	errs, err := d.outbox.Mark(limited, marks)
	cancel()
	if err == nil && len(errs) != len(batch) {
		err = fmt.Errorf("store answered %d of %d marks", len(errs), len(batch))
	}
	stored := err
	d.mu.Lock()
	was := d.sick
	if err != nil {
		d.keep(batch)
	} else {
		for i, o := range batch {
			if e := d.acknowledge(o, errs[i]); e != nil {
				err = e
			}
		}
	}
	d.sick = err
	if len(d.outcomes) == 0 { // those that it refused are nobody's any more
		d.sick = nil
	}
	if len(d.outcomes) > 0 {
		d.ring(d.mark)
	}
	d.ring(d.dispatch)
	d.mu.Unlock()
	if stored == nil {
		for _, o := range batch {
			if len(o.mark.Replies) > 0 { // also where it was fenced: it may be the answer that was lost
				d.opts.Replied(o.mark.Term.Installation)
			}
		}
	}
	switch {
	case err != nil && was == nil:
		d.log.LogAttrs(ctx, slog.LevelWarn, "outcomes not stored", slog.Int("marks", len(batch)), slog.Any("error", err))
	case err == nil && was != nil:
		d.log.LogAttrs(ctx, slog.LevelInfo, "outcomes stored again")
	}
	return err
}

// keep puts outcomes that were not stored back at the head of the queue.
func (d *Dispatcher) keep(batch []*outcome) {
	kept := slices.DeleteFunc(batch, func(o *outcome) bool { return o.hold.gone })
	d.unmarked -= len(batch) - len(kept)
	d.outcomes = append(kept, d.outcomes...)
}

// acknowledge acts on the store's answer to one outcome. An answer that the
// contract does not know is returned, after the outcome is queued again.
func (d *Dispatcher) acknowledge(o *outcome, err error) error {
	h, e := o.hold, o.entry
	if !h.gone && err != nil && !errors.Is(err, ErrMarkFenced) {
		d.outcomes = append(d.outcomes, o)
		return fmt.Errorf("mark %s %d: %w", o.row.target, o.row.seq, err)
	}
	d.unmarked--
	if h.gone {
		return nil
	}
	if err == nil && o.mark.State == Pending && e.back > 0 {
		d.returnAttempts(h, o.row, e)
		return nil
	}
	e.marking = false
	h.rest(o.row)
	switch l := e.lane; {
	case h.leaving:
	case e.absent:
		h.clear() // at once: what stands behind its place must not go first
		h.refresh()
	case o.mark.State == Pending && !l.window.gone:
		if w := l.window; err != nil || w.beyond(l, e.seq) { // dropped by somebody, or the store has it for us
			w.discard(e)
		}
		l.check(now())
		h.tidy(l.window)
	}
	return nil
}

// unqueue takes the outcomes of a hold out of the queue.
func (d *Dispatcher) unqueue(h *hold) {
	before := len(d.outcomes)
	d.outcomes = slices.DeleteFunc(d.outcomes, func(o *outcome) bool { return o.hold == h })
	d.unmarked -= before - len(d.outcomes)
	if len(d.outcomes) == 0 && d.sick != nil {
		d.sick = nil
		d.ring(d.dispatch)
	}
}
