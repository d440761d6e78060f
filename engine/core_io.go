package engine

import (
	"time"

	"leasehold/channel"
)

// Input is something that happened: an answer of the store, of a term, of a
// clock. Answers name what they answer, so that stale ones are ignored.
type Input interface{ input() }

// Action is something that the shell must do. Actions of one Step are to be
// begun in order; none of them blocks the next Step.
type Action interface{ action() }

type (
	// inTick: time passed. The shell sends it at Core.Next at the latest.
	inTick struct{}
	// inWake: something changed in the store; look now.
	inWake struct{}

	inSession struct { // OpenSession or RenewSession answered
		gen    int
		renew  bool
		sentAt Instant // before the call was made
		now    time.Time
		err    error
	}
	inListed struct {
		seq  uint64
		snap Snapshot
		err  error
	}
	inClaimed struct {
		gen    int
		ids    []string
		grants []Grant
		err    error
	}
	inReleased struct {
		gen  int
		held []Held
		err  error
	}
	inSaved struct { // SaveBackoff answered
		id    string
		epoch int64
		err   error
	}
	inDropped struct {
		id    string
		epoch int64
	}
	inEnded struct{ err error } // EndSession answered

	inReady struct {
		id   string
		term uint64
	}
	// inDown: Run returned, or the term never ran; its sockets are closed.
	inDown struct {
		id   string
		term uint64
		exit channel.Exit
	}
	// inPanicked: a goroutine or callback of the term panicked.
	inPanicked struct {
		id   string
		term uint64
		exit channel.Exit
	}
	// inSuccessor: the term wants to open a second socket beside its first.
	inSuccessor struct {
		id   string
		term uint64
	}
	// inClosed: the term's sockets and processes are gone, after a kill.
	inClosed struct {
		id   string
		term uint64
	}
	// inReturned: nothing of the term runs any more.
	inReturned struct {
		id   string
		term uint64
	}
	// inFenced: a write of this grant found another owner.
	inFenced struct {
		id    string
		epoch int64
	}

	// inStore: the store refused a write with err, whose kind says that it can
	// take nothing; or, with nil, a probe was written.
	inStore struct{ err error }
	// inAnomaly: the pause watch saw the clocks disagree.
	inAnomaly struct{ kind anomaly }
	// inLockLost: the file lock, or the file under it, is not ours any more.
	inLockLost struct{ err error }
	inDrain    struct{}
	// inHurry: the time to drain is over; close what is left.
	inHurry struct{}
)

type anomaly int

const (
	suspended anomaly = iota // the machine slept: every socket is dead
	paused                   // the process stood still: renew at once
)

type (
	// actOpen opens a session. A repeat has the same id.
	actOpen struct {
		gen      int
		id       string
		previous string
	}
	actRenew struct {
		gen int
		id  string
	}
	// actTrust moves the fence: before anything else of this Step.
	actTrust struct{ fence Instant }
	// actReap: delete what has expired, if the store's clock went as ours did
	// since a renewal sent at at, which was answered with now.
	actReap struct {
		now time.Time
		at  Instant
	}
	actList struct {
		seq   uint64
		known int64
	}
	actClaim struct {
		gen     int
		session string
		ids     []string
	}
	actRelease struct {
		gen     int
		session string
		held    []Held
	}
	actDrainSession struct{ id string }
	actEndSession   struct{ id string }
	actProbe        struct{}

	actHold struct{ term channel.Term }
	actDrop struct{ term channel.Term }
	// actBegin: begin a term in the store, build its channel, run it.
	actBegin struct {
		term uint64
		t    channel.Term // Run is 0: the store says it
		row  Installation
	}
	// actEnd: cancel the term's context with this cause.
	actEnd struct {
		id    string
		term  uint64
		cause error
	}
	// actKill: close the term's sockets under it, now; answer inClosed.
	actKill struct {
		id   string
		term uint64
	}
	// actSuccessor: now it may.
	actSuccessor struct {
		id   string
		term uint64
	}
	actBackoff struct {
		t channel.Term
		b Setback
	}
	// actStatus: the state of a link changed. A zero t.Epoch cannot be persisted.
	actStatus struct {
		t      channel.Term
		status LinkStatus
		next   Instant // of NextAttempt; 0 = none
	}
	actRows struct{ rows []Installation } // the believed list changed
	// actExit: stop the program. Nothing follows it.
	actExit struct{ err error }
)

func (inTick) input()      {}
func (inWake) input()      {}
func (inSession) input()   {}
func (inListed) input()    {}
func (inClaimed) input()   {}
func (inReleased) input()  {}
func (inDropped) input()   {}
func (inSaved) input()     {}
func (inEnded) input()     {}
func (inReady) input()     {}
func (inDown) input()      {}
func (inPanicked) input()  {}
func (inSuccessor) input() {}
func (inClosed) input()    {}
func (inReturned) input()  {}
func (inFenced) input()    {}
func (inStore) input()     {}
func (inAnomaly) input()   {}
func (inLockLost) input()  {}
func (inDrain) input()     {}
func (inHurry) input()     {}

func (actOpen) action()         {}
func (actRenew) action()        {}
func (actTrust) action()        {}
func (actReap) action()         {}
func (actList) action()         {}
func (actClaim) action()        {}
func (actRelease) action()      {}
func (actDrainSession) action() {}
func (actEndSession) action()   {}
func (actProbe) action()        {}
func (actHold) action()         {}
func (actDrop) action()         {}
func (actBegin) action()        {}
func (actEnd) action()          {}
func (actKill) action()         {}
func (actSuccessor) action()    {}
func (actBackoff) action()      {}
func (actStatus) action()       {}
func (actRows) action()         {}
func (actExit) action()         {}

// notAfter is the latest that the store's clock may show at boot instant now,
// unless it stepped.
func (a actReap) notAfter(now Instant) time.Time { return a.now.Add(now.Sub(a.at) + clockSlack) }
