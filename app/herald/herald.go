// Package herald tells the targets that name system events what nobody would ask:
// that an installation has been down for two minutes, that a target takes nothing,
// that deliveries were given up. It hears from the engine, from delivery and from
// the node what happens, and announces what is news of it.
package herald

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"leasehold/admin"
	"leasehold/app/backlog"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/internal/quiet"
)

const (
	// troubleAfter is how long a link or a target is unwell before anybody is told: a
	// restart at the other end, and most of what goes wrong with a network, is over
	// by then.
	troubleAfter = 2 * time.Minute
	// repeatEvery is how often the same gap, or a dead letter for the same target, is
	// told at most.
	repeatEvery = time.Minute
)

// Herald hears what happens and announces what is news of it. Nothing that tells it
// something waits for the announcement.
type Herald struct {
	// Announce takes an announcement, and About says what is known of an installation.
	// Both are set before Run.
	Announce func(delivery.Announcement)
	About    func(installation string) (channelType string, labels map[string]string)

	desk   *quiet.Desk
	redact func(string) string
	log    *slog.Logger

	gaveWay atomic.Int64 // deliveries that gave way and are not told yet

	silent atomic.Bool // the node stops: its links end because it ends them

	down map[string]decline // the links that are unwell; the engine's loop touches it
}

// decline is what a link was, and the worst of what it has been since.
type decline struct{ from, to engine.State }

var (
	_ engine.Observer   = (*Herald)(nil)
	_ delivery.Observer = (*Herald)(nil)
)

// New makes a herald that keeps its news until Run.
func New(redact func(string) string, log *slog.Logger) *Herald {
	return &Herald{desk: quiet.New(troubleAfter, repeatEvery), redact: redact, log: log, down: map[string]decline{}}
}

// Run announces until ctx ends.
func (h *Herald) Run(ctx context.Context) error { return h.desk.Run(ctx) }

// say announces one event about an installation; "" = about none.
func (h *Herald) say(typ, installation, except string, at time.Time, system news) {
	body, err := json.Marshal(system)
	if err != nil {
		h.log.Error("system event not written", "type", typ, "error", err)
		return
	}
	a := delivery.Announcement{Type: typ, Time: at, Except: except, Text: h.redact(system.sentence(installation)), System: json.RawMessage(h.redact(string(body)))}
	if installation != "" {
		kind, labels := h.About(installation)
		a.About = delivery.Origin{ID: installation, Type: kind, Labels: labels}
	}
	h.Announce(a)
}

// Link implements engine.Observer. What a link does because the store takes nothing
// is the store's news, and what it does because the node stops is no news.
func (h *Herald) Link(was, now engine.LinkStatus) {
	id := now.Installation
	d, unwell := h.down[id]
	switch {
	case h.silent.Load(), now.State == engine.Draining, now.State == engine.Backoff && strings.HasPrefix(now.Reason, "store"):
	case now.State == engine.Connected, now.State == engine.Standby, now.State == engine.Disabled:
		delete(h.down, id)
		h.desk.Over("link "+id, func(since time.Time) {
			h.say("system.link", id, "", now.Since, linkNews{From: string(d.to), To: string(now.State), Since: instant{now.Since}, DownSince: instant{since}})
		})
	default:
		if !unwell {
			d.from, d.to = was.State, now.State
		}
		if now.State != engine.Connecting { // a try in between says less than what it is to mend
			d.to = now.State
		}
		h.down[id] = d
		h.desk.Trouble("link "+id, now.State == engine.Blocked, func(since time.Time) { h.unwell(d, now, since) })
	}
}

// unwell tells that a link has been down for long, or is blocked.
func (h *Herald) unwell(d decline, now engine.LinkStatus, since time.Time) {
	id := now.Installation
	kind, _ := h.About(id)
	step := admin.NextStep(admin.Status{State: string(d.to), Reason: now.Reason, Detail: now.Detail}, id, kind)
	h.say("system.link", id, "", time.Now(), linkNews{
		From: string(d.from), To: string(d.to), Reason: now.Reason, Detail: now.Detail, Since: instant{since},
		Attempts: now.Attempts, NextAttempt: instant{now.NextAttempt}, NextStep: step,
	})
}

// Notice implements engine.Observer.
func (h *Herald) Notice(installation, code, words string) {
	at := time.Now()
	h.desk.Repeat("gap "+installation+" "+code, func(n int) {
		h.say("system.gap", installation, "", at, gapNews{Code: code, Detail: words, Count: n})
	})
}

// Store implements engine.Observer.
func (h *Herald) Store(err error) {
	now := time.Now()
	if err == nil {
		h.desk.Over("store", func(since time.Time) {
			h.say("system.store", "", "", now, storeNews{To: "takes", Since: instant{now}, DownSince: instant{since}})
		})
		return
	}
	h.desk.Trouble("store", true, func(since time.Time) {
		h.say("system.store", "", "", now, storeNews{To: "takes_nothing", Reason: fault.Of(err).String(), Detail: err.Error(), Since: instant{since}, NextStep: admin.StoreStep(err)})
	})
}

// Target implements delivery.Observer. A target is not told that it is down: it
// would hear so when it is not. That it was, it may want to know.
func (h *Herald) Target(c delivery.TargetChange) {
	now := time.Now()
	news := targetNews{Target: c.Target, From: targetWord(c.From), To: targetWord(c.To), Reason: c.Reason, NextStep: c.NextStep}
	if c.To == delivery.Open || c.To == delivery.Disabled {
		h.desk.Trouble("target "+c.Target, c.To == delivery.Disabled, func(since time.Time) {
			news.Since = instant{since}
			h.say("system.target", "", c.Target, time.Now(), news)
		})
		return
	}
	h.desk.Over("target "+c.Target, func(since time.Time) {
		h.say("system.target", "", "", now, targetNews{Target: c.Target, From: news.From, To: news.To, Since: instant{now}, DownSince: instant{since}})
	})
}

// Died implements delivery.Observer.
func (h *Herald) Died(l delivery.DeadLetter) {
	h.desk.Repeat("dead "+l.Target, func(n int) {
		h.say("system.dead_letter", l.Installation, "", l.At, deadNews{
			Target: l.Target, Count: n, Event: l.Event, Delivery: l.Delivery, Attempts: l.Attempts, Reason: l.Reason,
			NextStep: "leasehold deliveries list --state dead, then replay or drop them",
		})
	})
}

// GaveWay tells that deliveries gave way to newer events.
func (h *Herald) GaveWay(deliveries int64) {
	h.gaveWay.Add(deliveries)
	at := time.Now()
	h.desk.Repeat("backlog", func(int) {
		if n := h.gaveWay.Swap(0); n > 0 { // else the one before told it
			h.say("system.backlog", "", "", at, backlogNews{Count: n, Reason: backlog.Why, NextStep: backlog.NextStep})
		}
	})
}

// Started tells that the node runs, and which version ran before if it was another.
func (h *Herald) Started(version, previous string) {
	news := nodeNews{Event: "started", Version: version}
	if previous != "" && previous != version {
		news.Event, news.Previous = "upgraded", previous
	}
	h.say("system.node", "", "", time.Now(), news)
}

// Stopping tells that the node stops, and why if nobody asked it to. From then on
// its links are no news.
func (h *Herald) Stopping(version string, err error) {
	h.silent.Store(true)
	news := nodeNews{Event: "stopping", Version: version}
	if err != nil {
		news.Reason = err.Error()
	}
	h.say("system.node", "", "", time.Now(), news)
}

// Status tells of a trouble of the node's own that lasts, and of its end. reason is
// "" when it is well.
func (h *Herald) Status(what, state, reason, nextStep string) {
	now := time.Now()
	news := nodeNews{Event: "status", What: what, State: state, Reason: reason, NextStep: nextStep}
	if reason == "" {
		h.desk.Over("node "+what, func(since time.Time) {
			news.DownSince = instant{since}
			h.say("system.node", "", "", now, news)
		})
		return
	}
	h.desk.Trouble("node "+what, false, func(since time.Time) {
		news.Since = instant{since}
		h.say("system.node", "", "", time.Now(), news)
	})
}
