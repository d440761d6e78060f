package delivery

import (
	"context"
	"time"

	"leasehold/channel"
)

// Sink brings deliveries to where one target is.
type Sink interface {
	// Deliver makes one attempt and says what became of it. It returns soon after
	// ctx has ended: with Slow when its deadline passed, with Aborted when it was
	// cancelled, unless the target had answered by then. It may be called by as
	// many goroutines as the target's concurrency allows.
	Deliver(ctx context.Context, d Delivery) Result
}

// Batcher is a Sink that can bring several deliveries with one call.
type Batcher interface {
	Sink
	// DeliverBatch makes one attempt for all of them, in their order; they are taken as
	// a whole or not at all. It keeps to what Deliver promises.
	DeliverBatch(ctx context.Context, all []Delivery) Result
}

// Choosy is a Sink that does not want every event that its target names. It is asked
// before a delivery is stored, by the goroutine that accepts the event: it must not
// block. It is not asked about announcements.
type Choosy interface {
	Takes(installation string, e *channel.Event) bool
}

// Delivery is one attempt to bring one event to one target.
type Delivery struct {
	ID           string // stable over attempts, restarts and replays: the idempotency key
	EventID      string
	Type         string
	Installation string
	Attempt      int  // from 1; attempts that did not count are not in it
	Replay       bool // a person asked for it again
	Envelope     []byte
}

// Outcome is what an attempt says about its event and its target.
type Outcome int

// The outcomes. Refused, Broken and Slow count against the event, unless Broken
// and Slow turn out to be an outage (see circuit).
const (
	Taken   Outcome = iota // the target has it
	Refused                // the target does not want this event
	Broken                 // the target answered that it failed, or broke off: this event's fault, or its own
	Slow                   // no answer in time: likewise
	Down                   // the target cannot be reached, or asks to be left alone; says nothing of the event
	Gone                   // the target wants nothing any more
	Aborted                // we broke off: not an attempt
)

var outcomeNames = [...]string{"taken", "refused", "broken", "slow", "down", "gone", "aborted"}

// String returns the outcome's name for failures of tests and logs.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is what became of an attempt.
type Result struct {
	Outcome  Outcome
	Reason   string        // why it was not taken, for people; redacted
	After    time.Duration // the target said not to come back before; 0 = it said nothing
	NextStep string        // what a person does about it; "" = start the program behind the target
	Answer   *Answer       // Taken only: what the target said; nil = nothing to us
}
