package delivery

import (
	"context"
	"errors"
	"time"

	"leasehold/channel"
)

// State of a delivery.
type State int

// The states of a delivery, as stored. Pending is 0: an index holds only those.
const (
	Pending State = iota
	Delivered
	Dead    // given up, with its reason; payload kept for its retention
	Dropped // by a person, or because its target is no longer configured
)

var stateNames = [...]string{"pending", "delivered", "dead", "dropped"}

// String returns the state as it is shown and filtered by.
func (s State) String() string { return stateNames[s] }

// Item is one delivery that waits, without its body: small enough to keep
// thousands in memory.
type Item struct {
	Seq          int64 // of its event; the order of delivery
	Target       string
	Installation string
	Conversation string
	Thread       string
	Type         string // the event's
	WebhookID    string // stable over attempts, restarts and replays
	Attempts     int    // counted so far
	NextAttempt  time.Time
	AcceptedAt   time.Time
	Replay       bool
}

// Mark is the outcome of one dispatch. It is fenced by the term's owner and
// epoch, not by its run.
type Mark struct {
	Term   channel.Term
	Seq    int64
	Target string
	State  State         // Pending: try again after Wait
	Count  bool          // whether the try counts as an attempt
	Back   int           // attempts given back, because an outage of the target used them up; never below none
	Wait   time.Duration // until the next attempt; Pending only
	Error  string        // why it failed, redacted; "" = it did not, or of what was delivered why its answer was not taken
	// Replies are stored in the same transaction, if the mark is: as messages of their
	// installations, under the lease that their carrier then has. What of them has the
	// key of a message of its installation is stored already. Delivered only.
	Replies []Reply
}

// Size is how many rows a store writes for m, and the bytes of the bodies among them.
func (m *Mark) Size() (rows, bytes int) {
	for _, r := range m.Replies {
		bytes += len(r.Text) + len(r.Native)
	}
	return 1 + len(m.Replies), bytes
}

// Event is a stored event with what an envelope needs beside it.
type Event struct {
	Seq          int64
	ID           string // ours: evt_…
	Installation string
	ChannelType  string
	Labels       map[string]string
	AcceptedAt   time.Time
	Body         []byte // channel.Event as JSON
}

// Outbox is what delivery asks of a database.
type Outbox interface {
	// Pending lists the deliveries of a lease that wait, due or not, ordered by
	// seq then target, beginning after (afterSeq, afterTarget), at most limit.
	// Riders' deliveries stand under their carrier's lease.
	Pending(ctx context.Context, lease string, afterSeq int64, afterTarget string, limit int) ([]Item, error)
	// Payloads returns the events of seqs that exist, in no particular order. (Its
	// name is not Events: one store is an admin.Store too.)
	Payloads(ctx context.Context, seqs []int64) ([]Event, error)
	// Mark makes the outcomes durable, each together with its replies, sharing a commit with what else is being
	// written. The answer has an error for each mark in order: nil, or
	// ErrMarkFenced when the lease is not the term's any more or the delivery no
	// longer waits. The second result is the store's own failure: nothing is known
	// of any mark then, and marking again is safe.
	Mark(ctx context.Context, marks []Mark) ([]error, error)
}

// ErrMarkFenced means that the mark was not written, because the lease has another owner
// or the delivery no longer waits. Forget it.
var ErrMarkFenced = errors.New("delivery is not ours to mark")
