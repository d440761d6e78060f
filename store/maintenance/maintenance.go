// Package maintenance holds what tending a store takes and answers, for every
// database alike: how long things are kept, what a cycle did, what it saw. It
// does nothing; the stores do.
package maintenance

import (
	"fmt"
	"strings"
	"time"
)

// Retention is what a sweep deletes, and how gently. The zero value of a field
// is its default; a retention of zero keeps for ever.
type Retention struct {
	// Events are kept this long after they were accepted, and longer while a
	// delivery of theirs waits.
	Events time.Duration
	// Dead letters keep their event this long after they were given up. One is never
	// kept shorter than its event.
	Dead time.Duration
	// Messages are kept this long after they were sent, or given up. Those that wait
	// expire by themselves.
	Messages time.Duration
	// Audit: its rows are kept this long; it is bounded by their number, too.
	Audit time.Duration

	// Batch is the rows of one transaction: 500 hold the write lock for about ten
	// milliseconds.
	Batch int
	// Budget is the events of one cycle, 100,000: the next one goes on.
	Budget int
	// Pause is between two batches, 50 ms: for whoever waits to write.
	Pause time.Duration
}

// Defaults fills what is zero of Batch, Budget and Pause.
func (r Retention) Defaults() Retention {
	if r.Batch <= 0 {
		r.Batch = 500
	}
	if r.Budget <= 0 {
		r.Budget = 100_000
	}
	if r.Pause <= 0 {
		r.Pause = 50 * time.Millisecond
	}
	return r
}

// Swept is how many rows a sweep deleted, and how many messages it let expire.
type Swept struct {
	Events        int
	Deliveries    int  // with their events
	Installations int  // removed ones, whose backlog is delivered
	Messages      int  // that are done
	Notes         int  // of writes over the API, in the audit
	FollowUps     int  // addresses for answers, past their time
	Expired       int  // messages that nobody could send in time; they are kept
	More          bool // the budget ended before the work
}

// Idle reports whether nothing was done.
func (s Swept) Idle() bool {
	return s.Events+s.Deliveries+s.Installations+s.Messages+s.Notes+s.FollowUps+s.Expired == 0
}

// String says it in a few words; "" when idle.
func (s Swept) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.Events, "events"}, {s.Deliveries, "deliveries"}, {s.Installations, "installations"}, {s.Messages, "messages"}, {s.Notes, "rows of the audit"}, {s.FollowUps, "follow-up addresses"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	var done []string
	if len(parts) > 0 {
		done = append(done, "deleted "+strings.Join(parts, ", "))
	}
	if s.Expired > 0 {
		done = append(done, fmt.Sprintf("%d messages expired", s.Expired))
	}
	return strings.Join(done, "; ")
}

// Tended is what an upkeep saw and did.
type Tended struct {
	Bytes    int64 // of the database's file
	LogBytes int64 // of its log
	DiskFree int64 // under them
	Vacuumed int64 // pages given back to the file system
	Checked  bool  // the whole file was read and is sound
}

// Violation is an event that stands behind one of a later epoch of its lease.
type Violation struct {
	Lease  string
	Seq    int64
	Epoch  int64
	Before int64 // the epoch of an event with a smaller seq
}

// Audited is what an audit saw.
type Audited struct {
	Through    int64 // the newest seq that it has seen; begin there the next time
	Events     int
	Violations []Violation
	More       bool // there are further events
}

// Copied is a backup that was written.
type Copied struct {
	Path    string
	Bytes   int64
	At      time.Time // what was committed before is in it
	Took    time.Duration
	Through int64  // the newest event in it; 0 = none
	Master  string // the id of the master key that what is sealed in it needs; "" = nothing is
}

// Rotation is how a folder is kept full of backups. Every field is needed.
type Rotation struct {
	Dir   string
	Every time.Duration // how old the newest one must be before there is another
	Keep  int           // how many stay, the newest ones
}

// Rotated is what a rotation did.
type Rotated struct {
	Copied  Copied // without a Path: none was due
	Dropped int    // old ones that were deleted
}
