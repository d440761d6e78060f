package admin

import (
	"strings"

	"leasehold/engine"
)

// States that only an answer has: they are computed where no holder reports.
const (
	stateNotRunning = "not_running" // nothing runs; what is stored is history
	stateUnclaimed  = "unclaimed"   // enabled, and no node has it yet
)

// View is an installation as an answer shows it: its row, with the state that is
// true now.
type View struct {
	Installation
	// Declared is where the config file sets it, FILE:LINE; "" for source api.
	Declared string `json:"declared,omitempty"`
	// NextStep is what a person does about its state; "" = nothing.
	NextStep string `json:"next_step,omitempty"`
	// Warning is what is wrong with what was written, though it was taken.
	Warning string `json:"warning,omitempty"`
}

// view computes the state: this node's memory where it holds the lease, else what
// the holder stored, else what follows from nobody holding it.
func (a *API) view(i Installation, live map[string]Status) View {
	v := View{Installation: i}
	if a.fileOwns(i) {
		v.Declared = a.o.Declared(i.ID)
	}
	now, held := live[i.ID]
	switch {
	case held:
		v.Status = now
		if now.LastReady.IsZero() {
			v.Status.LastReady = i.Status.LastReady
		}
		if now.LastEvent.IsZero() {
			v.Status.LastEvent = i.Status.LastEvent
		}
	case !i.Enabled:
		v.Status = Status{State: string(engine.Disabled), Since: i.Status.Since, LastReady: i.Status.LastReady, LastEvent: i.Status.LastEvent}
	case a.o.Mode == Stopped && (!a.o.Shared || i.Owner == ""): // another node's row says how it is
		v.Status = Status{State: stateNotRunning, Detail: lastKnown(i.Status), LastReady: i.Status.LastReady, LastEvent: i.Status.LastEvent}
	case a.o.Mode == Running && i.Owner == "" && i.Via == "":
		v.Status = Status{State: stateUnclaimed, LastReady: i.Status.LastReady, LastEvent: i.Status.LastEvent}
	}
	v.NextStep = NextStep(v.Status, v.ID, v.Type)
	return v
}

func lastKnown(s Status) string {
	if s.State == "" {
		return "never ran"
	}
	return "was " + strings.TrimSpace(s.State+" "+s.Reason)
}

// well reports whether a state needs nobody: it works, or is as it was asked to be.
func well(s Status) bool {
	switch engine.State(s.State) {
	case engine.Connected, engine.Disabled, engine.Standby:
		return true
	default:
		return false
	}
}

// NextStep is what a person does about the state of an installation of a type, by its
// state and reason; "" where the program helps itself.
func NextStep(s Status, id, kind string) string {
	switch state := engine.State(s.State); {
	case state == engine.Blocked && s.Reason == "unknown_type":
		return "this program has no channel type " + kind + "; see leasehold types list"
	case state == engine.Blocked && s.Reason == "auth":
		return "replace its credential, then run leasehold reload; the same one is tried within 6h"
	case state == engine.Blocked && s.Reason == "config", state == engine.Backoff && s.Reason == "build":
		if step := missingSecret(s.Detail); step != "" {
			return step
		}
		return "correct its config; leasehold check names what is wrong with the file's"
	case state == engine.Blocked:
		return "correct what it says; see leasehold installations show " + id
	case state == engine.Backoff && s.Reason == "superseded":
		return "another consumer has its session: end that one, or give each an identity of its own; tried every 5 min"
	case state == engine.Backoff && s.Reason == "store_full":
		return "free space on the disk of the data folder"
	case state == engine.Wedged:
		return "restart leasehold when it stays so"
	case s.State == stateNotRunning:
		return "start it with leasehold run"
	}
	return ""
}

// missingSecret is what to run for a secret that the store lacks, where that is what
// the words of a fault say; "" = it is not.
func missingSecret(detail string) string {
	const set = "leasehold secrets set "
	_, name, ok := strings.Cut(detail, "is not set; run "+set)
	names := strings.Fields(name)
	if !ok || len(names) == 0 {
		return ""
	}
	return "run " + set + names[0] + "; what refers to it connects with it at once"
}
