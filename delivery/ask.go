package delivery

import (
	"context"
	"encoding/json"

	"leasehold/channel"
)

// askKey names an event by what its channel knows of it.
type askKey struct{ installation, event string }

// Ask waits for the program's own answer to an interaction, {"ack": …}, which it gives
// when the event is delivered to it; false: the installation does not wait for one, or
// there is none by the end of ctx. It is called before the event can be delivered, or
// its answer may be over; several may wait for one event. A target with batches, or
// whose answers are not taken, gives none.
func (d *Dispatcher) Ask(ctx context.Context, t channel.Term, e channel.Event) (json.RawMessage, bool) {
	key := askKey{orDefault(e.Installation, t.Installation), e.ID}
	if d.opts.Asks == nil || !d.opts.Asks(key.installation) {
		return nil, false
	}
	answer := make(chan json.RawMessage, 1)
	d.mu.Lock()
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
	if ack == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.askers[askKey{p.event.Installation, e.ID}] {
		select {
		case a <- ack:
		default: // another target was first
		}
	}
}
