package delivery

import (
	"context"
	"time"

	"leasehold/internal/eventid"
	"leasehold/internal/fault"
)

// Tested is what became of a test event.
type Tested struct {
	ID string // its webhook id
	Result
	Took time.Duration
}

// testType is the type of a test event: a system event, so that a program takes it for
// no message.
const testType = "system.test"

// Test makes one attempt at a target with a test event, signed and sent like any other,
// whatever state the target is in, and without changing that. It is stored nowhere. The
// error is fault.NotFound, or fault.Invalid for a target that is pulled from.
func (d *Dispatcher) Test(ctx context.Context, name string) (Tested, error) {
	d.mu.Lock()
	t := d.targets[name]
	if t == nil {
		d.mu.Unlock()
		return Tested{}, fault.Errorf(fault.NotFound, "there is no target %s; see leasehold targets list", name)
	}
	with, node := t.setup, d.node
	if _, pulled := with.sink.(*pullSink); pulled {
		d.mu.Unlock()
		return Tested{}, fault.Errorf(fault.Invalid, "target %s is pulled from: its program asks for events; see leasehold targets pull", name)
	}
	with.calls++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ended(with)
	}()
	began := time.Now()
	a := &announcement{Announcement: Announcement{Type: testType, Time: began, Text: "a test of target " + name, System: []byte(`{"target":"` + name + `"}`)}, id: eventid.NewSystem()}
	v := Delivery{ID: eventid.NewWebhook(0), EventID: a.id, Type: a.Type, Attempt: 1, Envelope: sealSystem(a, node)}
	limited, cancel := context.WithTimeout(ctx, with.Timeout)
	defer cancel()
	r := d.deliver(limited, &pick{target: t, setup: with}, v)
	return Tested{ID: v.ID, Result: r, Took: time.Since(began)}, nil
}
