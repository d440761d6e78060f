package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"leasehold/admin"
	"leasehold/app/backlog"
	"leasehold/app/herald"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/clockgate"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
	"leasehold/store"
)

// node is the running program, as the handlers ask about it.
type node struct {
	name, instance string
	started        time.Time
	store          store.Store
	dispatcher     *delivery.Dispatcher
	mailer         *outbound.Mailer
	followUps      *followUps
	router         *router
	reloader       *reloader
	chores         []*chore
	audit          *audit
	tasks          *loop.Group // that run them
	supervisor     *engine.Supervisor
	log            *slog.Logger
	ports          []net.Listener // of the API beside the socket

	clock  *clockgate.Gate
	herald *herald.Herald
	meter  *meter
	gone   *gone
	drops  *backlog.Drops
	pace   outbound.Pace
	loops  *delivery.Breaker
	pinger *pinger

	// config is what the node runs with. It is replaced whole and never written to:
	// what may change while the node runs asks for it each time.
	config atomic.Pointer[config.Config]
}

var _ admin.Process = (*node)(nil)

func (n *node) Info() admin.NodeInfo {
	dropped, _, last := n.drops.Count()
	info := admin.NodeInfo{Instance: n.instance, Name: n.name, Session: n.supervisor.Status().Session, PID: os.Getpid(), Started: n.started.UTC(), Dropped: dropped}
	for _, l := range n.ports {
		info.Listen = append(info.Listen, l.Addr().String())
	}
	if dropped > 0 {
		info.DroppedAt = last.UTC()
	}
	return info
}

// Links are the installations whose state this node makes: what it merely sees
// another one hold is told by that one's rows.
func (n *node) Links() map[string]admin.Status {
	links := map[string]admin.Status{}
	for _, l := range n.supervisor.Status().Links {
		if l.State == engine.Standby {
			continue
		}
		links[l.Installation] = admin.Status{
			State: string(l.State), Reason: l.Reason, Detail: l.Detail, Since: l.Since, Attempts: l.Attempts,
			NextAttempt: l.NextAttempt, LastReady: l.LastReady, LastEvent: l.LastEvent,
		}
	}
	return links
}

// Ready checks what a node needs to work: a store that takes writes, and a session
// in it. A single link that is down is that installation's trouble.
func (n *node) Ready(ctx context.Context) error {
	switch s := n.supervisor.Status(); {
	case s.Store != nil:
		return fmt.Errorf("the store takes nothing: %w", s.Store)
	case s.Draining:
		return fault.Errorf(fault.Temporary, "the node is draining")
	case s.Session == "":
		return errors.New("no session is open in the store")
	}
	if _, err := n.store.Totals(ctx); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	return nil
}

func (n *node) Wake(leases []string) {
	for _, l := range leases {
		n.dispatcher.Wake(l)
	}
}

// poster takes in the messages of the node's targets.
func (n *node) poster() poster { return poster{n.store, n.mailer, &n.pace} }

func (n *node) WakeMessages(lease string) { n.mailer.Wake(lease) }

func (n *node) Limited(lease, installation, conversation string) string {
	return n.mailer.Limited(lease, installation, conversation)
}

func (n *node) Call(ctx context.Context, lease string, c channel.Call) (json.RawMessage, error) {
	return n.mailer.Call(ctx, lease, c) //nolint:wrapcheck // the handler tells its errors apart and says what they mean
}

func (n *node) Trigger() { n.supervisor.Trigger() }

// Targets are the targets of the dispatcher, in the words of people.
func (n *node) Targets() []admin.Target {
	var all []admin.Target
	for _, t := range n.dispatcher.Stats().Targets {
		all = append(all, targetState(t))
	}
	return all
}

// targetState says how a target does. One that can be reached and takes nothing is
// failing as long as something waits for it: what it gave up on is counted as dead.
func targetState(t delivery.TargetStats) admin.Target {
	shown := admin.Target{
		Name: t.Name, Type: t.Kind, State: string(t.State), Reason: t.Reason, Since: t.Since, NextProbe: t.NextProbe,
		NextStep: t.NextStep, LastError: t.LastError, LastErrorAt: t.LastErrorAt, FailingSince: t.FailingSince,
	}
	switch {
	case t.State == delivery.Open:
		shown.State = "down"
	case t.State != delivery.Closed: // disabled, unknown: words already
	case t.FailingSince.IsZero() || t.Waiting == 0 && !t.More && t.Announcements == 0:
		shown.State, shown.NextStep = "ok", ""
	default:
		shown.State, shown.Since = "failing", t.FailingSince
		shown.Reason = waits(t) + ", the last attempt failed: " + t.LastError
	}
	return shown
}

// waits says what waits for a target.
func waits(t delivery.TargetStats) string {
	switch {
	case t.More:
		return fmt.Sprintf("more than %d deliveries wait", t.Waiting)
	case t.Waiting > 1:
		return fmt.Sprintf("%d deliveries wait", t.Waiting)
	case t.Waiting == 1:
		return "1 delivery waits"
	case t.Announcements > 1:
		return fmt.Sprintf("%d system events wait", t.Announcements)
	default:
		return "1 system event waits"
	}
}

// awaitSession returns when the node has a session, and so may hold something; at
// the latest when ctx ends or the engine does.
func (n *node) awaitSession(ctx context.Context, engineEnded <-chan struct{}) {
	for n.supervisor.Status().Session == "" && loop.Sleep(ctx, 2*time.Millisecond) == nil {
		select {
		case <-engineEnded:
			return
		default:
		}
	}
}
