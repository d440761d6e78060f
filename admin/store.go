package admin

import (
	"context"
	"encoding/json"
	"time"

	"leasehold/delivery/outbound"
	"leasehold/internal/apitoken"
)

// Who answers a pressed button or a slash command.
const (
	Defer = "defer" // we do, at once: that somebody works on it
	Sync  = "sync"  // the program, if it does so in time
)

// Installation is an installation as people see it: the row, and what the holder
// of its lease last said of its link.
type Installation struct {
	ID      string            `json:"id"`
	Type    string            `json:"type"`
	Via     string            `json:"via,omitempty"`
	Config  json.RawMessage   `json:"config,omitempty"` // secrets by reference only
	Labels  map[string]string `json:"labels,omitempty"`
	Targets []string          `json:"targets,omitzero"` // nil = the default ones; empty = nowhere
	Enabled bool              `json:"enabled"`
	// Interactions is Defer or Sync; "" = Defer.
	Interactions string `json:"interactions,omitempty"`
	Source       string `json:"source"` // file: the config file owns it; api
	Revision     int64  `json:"revision"`

	Fingerprint string `json:"-"`
	Identity    string `json:"-"`

	Status Status `json:"status,omitzero"`
	Owner  string `json:"owner,omitempty"` // the session that holds the lease; "" = nobody
	Node   string `json:"node,omitempty"`  // its name
	Epoch  int64  `json:"epoch,omitempty"`
	// Backlog counts deliveries that wait; OldestPending is when the oldest of
	// them was accepted, zero = none.
	Backlog       int64     `json:"backlog"`
	OldestPending time.Time `json:"oldest_pending,omitzero"`
}

// Status is the state of a link, as stored by its holder.
type Status struct {
	State       string    `json:"state,omitempty"` // "" = never reported
	Reason      string    `json:"reason,omitempty"`
	Detail      string    `json:"detail,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	Attempts    int       `json:"attempts,omitempty"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	LastReady   time.Time `json:"last_ready,omitzero"`
	LastEvent   time.Time `json:"last_event,omitzero"`
}

// EventQuery selects events, newest first, or oldest first when After is set.
type EventQuery struct {
	Installation string
	Type         string
	After        int64 // seq; only newer ones, oldest first: how a tail goes on
	Before       int64 // seq; only older ones: the next page
	Limit        int   // 0 = 50, at most 500
}

// Event is a stored event with the journey of each of its deliveries.
type Event struct {
	Seq          int64           `json:"seq"`
	ID           string          `json:"id"` // ours: evt_…
	PlatformID   string          `json:"platform_id"`
	Installation string          `json:"installation"`
	Type         string          `json:"type"`
	Conversation string          `json:"conversation,omitempty"`
	Thread       string          `json:"thread,omitempty"`
	OccurredAt   time.Time       `json:"occurred_at,omitzero"`
	AcceptedAt   time.Time       `json:"accepted_at"`
	Epoch        int64           `json:"epoch"`
	Body         json.RawMessage `json:"body,omitempty"` // the normalised event; in Event only, not in lists
	Deliveries   []Delivery      `json:"deliveries,omitempty"`
}

// DeliveryQuery selects deliveries, newest event first.
type DeliveryQuery struct {
	Installation string
	Target       string
	State        string // pending, delivered, dead, dropped; "" = all
	Before       int64  // event seq; only older ones
	Limit        int    // 0 = 50, at most 500
}

// Delivery is the journey of one event to one target.
type Delivery struct {
	ID           string    `json:"id"` // its webhook id
	EventSeq     int64     `json:"event_seq"`
	EventID      string    `json:"event_id"`
	Installation string    `json:"installation"`
	Target       string    `json:"target"`
	State        string    `json:"state"`
	Attempts     int       `json:"attempts"`
	NextAttempt  time.Time `json:"next_attempt,omitzero"`
	LastError    string    `json:"last_error,omitempty"`
	DeliveredAt  time.Time `json:"delivered_at,omitzero"`
	GivenUpAt    time.Time `json:"given_up_at,omitzero"` // dead or dropped
	Replay       bool      `json:"replay,omitempty"`     // a person asked for it again
	Lease        string    `json:"-"`                    // the carrier's id, for waking its lanes
}

// ReplayQuery selects deliveries to one target that are over: delivered, dead or
// dropped. A delivery is in the window when its event was accepted in it, or when
// it ended in it: a program that was wrong for an hour was wrong about what it was
// handed then, however long that had waited.
type ReplayQuery struct {
	Target       string
	Installation string    // "" = all
	Type         string    // of the event; "" = all
	Since, Until time.Time // by the store's clock; Since is in the window, Until is not
	After        int64     // event seq; only newer ones: how a long one goes on
	Limit        int       // how many deliveries are looked at; 0 = 50, at most 500
}

// MessageQuery selects messages, the newest first.
type MessageQuery struct {
	Installation string
	Event        string // that it answers; "" = any, and none
	State        string // one of outbound.States; "" = all
	Before       int64  // seq; only older ones
	Limit        int    // 0 = 50, at most 500
}

// Message is what somebody asked us to send to a platform, and what became of it.
type Message struct {
	Seq            int64             `json:"seq"`
	ID             string            `json:"id"` // ours: out_…
	Installation   string            `json:"installation"`
	Event          string            `json:"event,omitempty"` // that it answers
	Op             string            `json:"op"`
	Conversation   string            `json:"conversation,omitempty"`
	Thread         string            `json:"thread,omitempty"`
	MessageID      string            `json:"message_id,omitempty"` // the platform's, that the op refers to
	Text           string            `json:"text,omitempty"`       // with Format and Native in Message only, not in lists
	Format         string            `json:"format,omitempty"`
	Native         json.RawMessage   `json:"native,omitempty"`
	Parts          int               `json:"parts,omitempty"` // the messages that it takes on the platform, when that is more than one
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	State          string            `json:"state"`
	Attempts       int               `json:"attempts"`
	NextAttempt    time.Time         `json:"next_attempt,omitzero"`
	LastError      string            `json:"last_error,omitempty"`
	Receipt        *outbound.Receipt `json:"receipt,omitempty"`
	CreatedAt      time.Time         `json:"created_at"`
	ExpiresAt      time.Time         `json:"expires_at"`
	EndedAt        time.Time         `json:"ended_at,omitzero"` // when nothing more became of it
	Lease          string            `json:"-"`                 // the carrier's id, for waking who sends
}

// TaskRun is the last run of a maintenance task, as far as it is kept: failures
// and work done are stored, idle cycles are not.
type TaskRun struct {
	Task        string    `json:"task"`
	LastStart   time.Time `json:"last_start,omitzero"`
	LastSuccess time.Time `json:"last_success,omitzero"`
	Failures    int       `json:"failures"`
	LastError   string    `json:"last_error,omitempty"`
	Result      string    `json:"result,omitempty"` // what it did, in a few words
	// Session and Epoch are the token of the node that holds the task, where one runs
	// it for all. Session "" = every node runs it for itself.
	Session string `json:"-"`
	Epoch   int64  `json:"-"`
}

// TaskHolder is the node that runs a task for all nodes of a store that they share.
type TaskHolder struct {
	Task    string
	Session string // of the holder; "" = nobody holds it
	Node    string // the holder's name
	Epoch   int64
}

// Node is a live session.
type Node struct {
	Session  string    `json:"session"`
	Instance string    `json:"instance"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	OpenedAt time.Time `json:"opened_at"`
	Draining bool      `json:"draining"` // it is granted nothing: its process is about to end, or it was drained
	Drained  bool      `json:"drained"`  // by command, until it is resumed
	Weight   int       `json:"weight"`   // its share, beside those of the others
	Leases   int       `json:"leases"`
}

// Totals are the counts that a status line needs, by state.
type Totals struct {
	Installations int              `json:"installations"`
	Links         map[string]int   `json:"links"`      // installations by stored link state
	Deliveries    map[string]int64 `json:"deliveries"` // pending and dead only: the rest grows with history
	Messages      int64            `json:"messages"`   // that wait, or are on their way
	Bytes         int64            `json:"bytes"`      // of the database and its log on disk
}

// Store is what the handlers ask of a database. Reads see what was committed
// before the call. Writes are durable when they return, and wake whoever must
// act on them. Answers carry a kind: fault.NotFound, fault.Conflict, fault.Invalid.
type Store interface {
	TargetStore

	Installations(ctx context.Context) ([]Installation, error)
	Installation(ctx context.Context, id string) (Installation, error)
	// PutInstallation creates or replaces a row; revision 0 creates, any other must
	// be the stored one (fault.Conflict). A changed fingerprint clears fails and
	// not_before. Two enabled rows of one type and identity are a fault.Conflict.
	PutInstallation(ctx context.Context, i Installation, revision int64) (Installation, error)
	SetEnabled(ctx context.Context, id string, enabled bool) error
	// RemoveInstallation marks the row: its term ends, its backlog is still
	// delivered, then the sweeper deletes it. Its events stay for their retention.
	RemoveInstallation(ctx context.Context, id string) error
	// Reconcile makes the rows of source file exactly want, in one transaction; rows
	// of source api are not touched, and one of the same id is a fault.Conflict. It
	// returns the ids that it added, changed and removed.
	Reconcile(ctx context.Context, want []Installation) (added, changed, removed []string, err error)

	Events(ctx context.Context, q EventQuery) ([]Event, error)
	Event(ctx context.Context, id string) (Event, error)
	Deliveries(ctx context.Context, q DeliveryQuery) ([]Delivery, error)
	Delivery(ctx context.Context, id string) (Delivery, error)
	// ReplayDeliveries makes dead or dropped deliveries wait again, attempts 0, at
	// once, marked as a replay, with their webhook ids; others are skipped. It
	// returns those that now wait.
	ReplayDeliveries(ctx context.Context, ids []string) ([]Delivery, error)
	// Replayable lists what q selects, the oldest event first. It looks at q.Limit
	// deliveries, so that it reads little at a time; next is the seq to go on after,
	// 0 when there is nothing left. Those whose installation was swept are left out.
	Replayable(ctx context.Context, q ReplayQuery) (found []Delivery, next int64, err error)
	// RedeliverDeliveries is ReplayDeliveries for delivered ones, too.
	RedeliverDeliveries(ctx context.Context, ids []string) ([]Delivery, error)
	// DropDeliveries gives up deliveries that wait or are dead. It returns how many.
	DropDeliveries(ctx context.Context, ids []string) (int, error)

	// PutMessage stores a message that its holder then sends. Posting the same id
	// again, or another message with the same installation and key, stores nothing and
	// returns the first one as it is now. fault.NotFound: there is no such installation.
	PutMessage(ctx context.Context, m outbound.Message) (Message, error)
	Messages(ctx context.Context, q MessageQuery) ([]Message, error)
	Message(ctx context.Context, id string) (Message, error)

	Tokens(ctx context.Context) ([]apitoken.Token, error)
	Token(ctx context.Context, id string) (apitoken.Token, error)
	// PutToken stores a new token. Another one of its name is a fault.Conflict; the same
	// one again is stored already.
	PutToken(ctx context.Context, t apitoken.Token) error
	// RemoveToken removes the token of an id, or of a name.
	RemoveToken(ctx context.Context, id string) error
	// TouchToken notes that a token was used now.
	TouchToken(ctx context.Context, id string) error
	// NoteWrite adds a row to the audit, of which the newest 10,000 are kept.
	NoteWrite(ctx context.Context, n WriteNote) error
	// WriteNotes lists the audit, newest first: the rows before a seq, 0 = all.
	WriteNotes(ctx context.Context, before int64, limit int) ([]WriteNote, error)

	Nodes(ctx context.Context) ([]Node, error)
	// DrainNode says of the node with this instance id that it shall hold nothing, or
	// that it may again; see engine.Store.
	DrainNode(ctx context.Context, instance string, drained bool) error
	Totals(ctx context.Context) (Totals, error)
	TaskRuns(ctx context.Context) ([]TaskRun, error)
	// SaveTaskRun replaces the last run of a task. With a Session that does not hold
	// the task under that Epoch it writes nothing: engine.ErrFenced.
	SaveTaskRun(ctx context.Context, r TaskRun) error
	// TaskHolders are those of the tasks that one node runs for all.
	TaskHolders(ctx context.Context) ([]TaskHolder, error)
}
