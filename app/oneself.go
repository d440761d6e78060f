package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"leasehold/admin"
	"leasehold/app/herald"
	"leasehold/delivery"
)

// What a node knows of itself, beside what it holds.

// clockHeld is why the wall clock is not believed; "" = it is. A store that several
// processes share has a clock of its own, and the stored times are its.
func (n *node) clockHeld() string {
	if !n.store.Sole() {
		return ""
	}
	return n.clock.Held()
}

// believed is the clock by which delivery tells the age of what is stored.
func (n *node) believed() delivery.Clock {
	if n.store == nil || !n.store.Sole() {
		return nil
	}
	return n.clock
}

// clockChanged is told when the clock stops or begins to be believed.
func (n *node) clockChanged(held string) {
	switch {
	case !n.store.Sole(): // it is not asked
		return
	case held == "":
		n.log.Info("clock believed")
	default:
		n.log.Warn("clock not believed", "reason", held, "next_step", clockStep)
	}
	n.herald.Status("clock", clockState(held), held, stepIf(held, clockStep))
}

const clockStep = "let the machine learn the time (NTP), or set it; what waits for that goes on by itself"

func clockState(held string) string {
	if held == "" {
		return "ok"
	}
	return "held"
}

func stepIf(reason, step string) string {
	if reason == "" {
		return ""
	}
	return step
}

// taskEnded is told how each cycle of a task ended. The ping's own failures are not
// for those who are told of the box: they would hear of the network in between.
func (n *node) taskEnded(name string, err error) {
	switch {
	case name == pingTask:
	case err != nil:
		n.herald.Status("task "+name, "failing", err.Error(), "correct the cause, then leasehold tasks run "+name)
	default:
		n.herald.Status("task "+name, "ok", "", "")
	}
}

// Troubles are the node's own, beside not being ready and beside its tasks.
func (n *node) Troubles() (all []admin.Trouble) {
	if held := n.clockHeld(); held != "" {
		all = append(all, admin.Trouble{What: "clock", State: "held", Reason: held, NextStep: clockStep})
	}
	if s := n.supervisor.Status(); s.Drained {
		reason := "by command; it holds nothing"
		if s.Held > 0 {
			reason = fmt.Sprintf("by command; %d installations are still to be given up", s.Held)
		}
		all = append(all, admin.Trouble{What: "node " + n.name, State: "drained", Reason: reason, NextStep: "leasehold nodes resume " + n.name + " when the work on it is done"})
	}
	if s := n.dispatcher.Stats(); s.Store != "" && n.supervisor.Status().Store == nil {
		all = append(all, admin.Trouble{What: "store", State: "refusing", Reason: "outcomes of deliveries are not stored: " + s.Store, NextStep: "see the log; nothing new is sent until they are"})
	}
	return slices.Concat(all, herald.LoopTroubles(n.loops), n.drops.Troubles())
}

// ping tells somebody outside how the node is. Where nothing runs, that nobody says
// anything is what there is to say.
func (n *node) ping(ctx context.Context) (string, error) {
	if n == nil {
		return "", errors.New("nothing runs here, so nothing is sent; start it with leasehold run")
	}
	return n.pinger.run(ctx)
}
