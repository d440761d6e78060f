package outbound

import (
	"context"
	"errors"
	"time"

	"leasehold/channel"
)

// Item is a message that waits, without its content: small enough to keep
// thousands in memory. Its times are spans from the moment of the answer: the
// store's clock is the one that counts.
type Item struct {
	Seq          int64 // the order in which messages were posted
	ID           string
	Installation string
	ChannelType  string // of the installation; "" = it is gone
	Conversation string
	Edits        string        // the message that an edit is of; "" = it is none
	State        State         // Queued or Sending
	Attempts     int           // counted so far
	Due          time.Duration // until it may be tried; 0 = at once
	Left         time.Duration // until it expires; 0 = it has
}

// TakenUp is a message that is about to be sent. While the event that it answers has a
// follow-up address that is good, and the message is for that event's conversation, it
// comes along as it was sealed.
type TakenUp struct {
	Letter

	Event  string // the platform's id of that event
	Sealed []byte // nil = there is none
	Named  *Named // the message of ours that its MessageID names; nil = none does
}

// End is what became of a message that was taken up. It is fenced by the term's
// owner and epoch, not by its run.
type End struct {
	Term    channel.Term
	Seq     int64
	State   State         // Queued: it goes on after Wait; Sending: it stays taken up, and only Body changes
	Count   bool          // whether the try counts as an attempt
	Doubt   bool          // Queued only: it may have been sent all the same, and is tried again because the platform drops the second
	Wait    time.Duration // Queued only
	Error   string        // why it was not sent, in the platform's words, redacted
	Receipt []byte        // Sent, or Queued because a part of it was, which is no doubt any more; nil = what is stored stays
	Body    []byte        // what EncodeLetter wrote, in place of what is stored; nil = that stays
}

// Postbox is what outbound asks of a database. Riders' messages stand under their
// carrier's lease. Every write shares a commit with what else is being written, and
// is durable when it returns nil; after any error but those below nothing is known
// of it, and making it again is safe.
type Postbox interface {
	// Laden lists the leases under which messages wait.
	Laden(ctx context.Context) ([]string, error)
	// Outgoing lists the messages of a lease that wait, due or not, in the order in
	// which they were posted, beginning after the seq, at most limit.
	Outgoing(ctx context.Context, lease string, after int64, limit int) ([]Item, error)
	// BeginSending notes that a queued message is about to be sent, and returns it.
	// It may be called again by the same term. ErrFenced, ErrSettled; ErrExpired: the
	// message's time is over by the store's clock, which was written instead.
	BeginSending(ctx context.Context, t channel.Term, seq int64) (TakenUp, error)
	// EndSending writes what became of a message that is Sending, whoever began; to
	// Expired, of one that is Queued. One that was in doubt once is Unknown instead of
	// Expired, and one of which a part was sent is Refused with Partly, whoever lets it
	// expire. ErrFenced, ErrSettled.
	EndSending(ctx context.Context, e End) error
}

// What a Postbox answers beside its own failures.
var (
	// ErrFenced: the lease is not the term's any more. Stop.
	ErrFenced = errors.New("the lease of the message is another's")
	// ErrSettled: the message is not in the state that was expected: it is done, or
	// what is written now was written before. Look again.
	ErrSettled = errors.New("the message is in another state")
	// ErrExpired: its time is over. It is done.
	ErrExpired = errors.New("the message has expired")
)

// Partly is why a message is refused whose time was over when a part of it was sent.
const Partly = "its time was over before all parts were sent; the receipt has those that were"

// LostWithHolder is what is said of a message that was being sent when its holder
// died.
const LostWithHolder = "leasehold ended while the message was being sent; look at the platform before you send it again"
