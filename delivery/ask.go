package delivery

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"leasehold/channel"
)

const (
	// earlyMost is how many answers are kept for who asks too late: more than buttons
	// are pressed at once, and few enough for each to be as large as an answer may be.
	earlyMost = 32
	// earlyFor is how long one is: as long as a platform waits.
	earlyFor = 3 * time.Second
)

// askKey names an event by what its channel knows of it.
type askKey struct{ installation, event string }

// earlyAnswer is an answer that nobody waited for yet.
type earlyAnswer struct {
	key askKey
	ack json.RawMessage
	at  instant
}

// Ask waits for the program's own answer to an interaction, {"ack": …}, which it gives
// when the event is delivered to it; false: the installation does not wait for one, or
// there is none by the end of ctx. Several may wait for one event. Who asks beside the
// event's acceptance may come after its answer, which is kept for a moment. A target
// with batches, or whose answers are not taken, gives none.
func (d *Dispatcher) Ask(ctx context.Context, t channel.Term, e channel.Event) (json.RawMessage, bool) {
	key := askKey{orDefault(e.Installation, t.Installation), e.ID}
	if d.opts.Asks == nil || !d.opts.Asks(key.installation) {
		return nil, false
	}
	answer := make(chan json.RawMessage, 1)
	d.mu.Lock()
	if ack := d.takeEarly(key); ack != nil {
		d.mu.Unlock()
		return ack, true
	}
	d.askers[key] = append(d.askers[key], answer)
	d.mu.Unlock()
	defer d.unask(key, answer)
	select {
	case ack := <-answer:
		return ack, true
	case <-ctx.Done():
		return nil, false
	}
}

func (d *Dispatcher) unask(key askKey, answer chan json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.askers[key]
	for i, a := range all {
		if a == answer {
			all = append(all[:i:i], all[i+1:]...)
			break
		}
	}
	if d.askers[key] = all; len(all) == 0 {
		delete(d.askers, key)
	}
}

// acknowledges hands the answer that the target of p gave to who waits for it.
func (d *Dispatcher) acknowledges(p *pick, e *channel.Event, ack json.RawMessage) {
	if ack == nil || d.opts.Asks == nil || !d.opts.Asks(p.event.Installation) {
		return
	}
	key := askKey{p.event.Installation, e.ID}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.askers[key]) == 0 {
		d.keepEarly(key, ack)
	}
	for _, a := range d.askers[key] {
		select {
		case a <- ack:
		default: // another target was first
		}
	}
}

// keepEarly keeps an answer that nobody waits for; the first of an event counts. d.mu
// is held.
func (d *Dispatcher) keepEarly(key askKey, ack json.RawMessage) {
	at := now()
	d.early = slices.DeleteFunc(d.early, func(e earlyAnswer) bool { return at >= e.at.add(earlyFor) })
	if slices.ContainsFunc(d.early, func(e earlyAnswer) bool { return e.key == key }) {
		return
	}
	if len(d.early) == earlyMost {
		d.early = slices.Delete(d.early, 0, 1)
	}
	d.early = append(d.early, earlyAnswer{key, ack, at})
}

// takeEarly is the answer that came before its question, once; nil: there is none.
// d.mu is held.
func (d *Dispatcher) takeEarly(key askKey) json.RawMessage {
	for i, e := range d.early {
		if e.key == key {
			d.early = slices.Delete(d.early, i, i+1)
			return e.ack
		}
	}
	return nil
}
