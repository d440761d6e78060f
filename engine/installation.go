package engine

import (
	"encoding/json"
	"time"

	"leasehold/channel"
)

// Installation is one bot, or device account, installed in one place, as the
// store lists it.
type Installation struct {
	ID          string
	Type        string
	Via         string          // rides on this installation's connection; "" = has its own
	Config      json.RawMessage // the type's keys, secrets by reference
	Fingerprint string          // changes when the connection must be rebuilt
	Identity    string          // who it is on the platform; keys the cursor
	Enabled     bool
	Removed     bool // a person took it away: listed while it is leased or has a backlog
	Backlog     bool // disabled or removed, yet deliveries wait: leased for draining, without a connection
	Revision    int64
}

// Lease is the right to run an installation, as listed.
type Lease struct {
	ID    string
	Owner string // session id; "" = nobody
	Alive bool   // the owner's session row exists
	Epoch int64
}

// LoopPrefix begins the id of the lease of a maintenance task that one node runs for
// all. No installation is called so, since an id has no colon; such a lease is not
// listed, and is nobody's share.
const LoopPrefix = "loop:"

// TaskLease is the id of a task's lease, for Release.
func TaskLease(task string) string { return LoopPrefix + task }

// Grant is one holding of a lease, as a claim returns it.
type Grant struct {
	ID    string
	Epoch int64
	Run   int64         // of the last term, whoever ran it
	Fails int           // failures in a row, kept over owners
	Wait  time.Duration // until the next dial is allowed; 0 = now
}

// Setback is what failures in a row cost, as kept with the lease.
type Setback struct {
	Fingerprint string // of what failed
	Fails       int
	Wait        time.Duration // from now on, until the next dial; 0 = none
}

// Held names a grant for release.
type Held struct {
	ID    string
	Epoch int64
}

// Peer is a node's session.
type Peer struct {
	Session  string
	Instance string
	Weight   int
	Draining bool // its process is about to end, or the node was drained: it is granted nothing
}

// State is what an installation's link is doing.
type State string

// The states. Each is persisted with its reason by whoever holds the lease;
// where nobody does, it is computed when shown.
const (
	Standby    State = "standby"    // another node has it
	Connecting State = "connecting" // a term is being built or dials
	Connected  State = "connected"  // the platform said so
	Backoff    State = "backoff"    // waits until NextAttempt
	Blocked    State = "blocked"    // needs a person
	Draining   State = "draining"   // is being given up
	Wedged     State = "wedged"     // its channel does not return; its sockets are closed
	Disabled   State = "disabled"   // not wanted
)

// LinkStatus is the truth about one installation's link.
type LinkStatus struct {
	Installation string
	State        State
	Reason       string    // a short code: auth, disconnected, no_type, store_full, …
	Detail       string    // the platform's own words
	Since        time.Time // of the state
	Attempts     int       // failures in a row
	NextAttempt  time.Time // zero = none is due
	LastReady    time.Time // zero = never in this process
	LastEvent    time.Time // zero = none in this process
}

// Heard is one event on its way into the store.
type Heard struct {
	Event   channel.Event
	Body    []byte   // the event as JSON, made once
	Targets []string // a delivery is stored for each

	// FollowUp is the event's follow-up address, sealed, kept until FollowUpUntil; nil =
	// it has none.
	FollowUp      []byte
	FollowUpUntil time.Time
}

// AcceptRequest is one batch of one term. Cursor nil leaves the stored one
// unchanged.
type AcceptRequest struct {
	Term     channel.Term
	Identity string
	Events   []Heard
	Cursor   []byte
}

// Accepted is what became of a batch.
type Accepted struct {
	LastSeq    int64 // of the newest event stored; 0 = every event was a duplicate, or there was none
	Duplicates int
}
