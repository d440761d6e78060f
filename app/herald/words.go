package herald

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"leasehold/app/backlog"
	"leasehold/delivery"
	"leasehold/internal/human"
)

// What stands under system in the envelope of each type. docs/delivery.md explains
// them to whoever receives them.

// instant is a time as an envelope writes it; the zero one is left out.
type instant struct{ time.Time }

// MarshalJSON writes it in UTC, with milliseconds.
func (m instant) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, m.UTC().Format(delivery.Timestamp)), nil
}

// news is what is told, and the same in a sentence for people: a target of type
// message says it in a conversation.
type news interface {
	sentence(installation string) string
}

// because adds why, and what to do about it, where either is known.
func because(what, reason, step string) string {
	if reason != "" {
		what += " (" + reason + ")"
	}
	if step != "" {
		what += ": " + step
	}
	return what
}

// after is how long something was not well, in words.
func after(down, well instant) string {
	return ", after " + human.Span(well.Sub(down.Time))
}

type linkNews struct {
	From        string  `json:"from,omitempty"` // "" = it was never seen before
	To          string  `json:"to"`
	Reason      string  `json:"reason,omitempty"`
	Detail      string  `json:"detail,omitempty"`
	Since       instant `json:"since"`               // not well since; or well since
	DownSince   instant `json:"down_since,omitzero"` // well again: when it began not to be
	Attempts    int     `json:"attempts,omitempty"`
	NextAttempt instant `json:"next_attempt,omitzero"`
	NextStep    string  `json:"next_step,omitempty"`
}

func (n linkNews) sentence(installation string) string {
	if !n.DownSince.IsZero() {
		return "installation " + installation + " is " + n.To + " again" + after(n.DownSince, n.Since)
	}
	return because("installation "+installation+" is "+n.To, cmp.Or(n.Detail, n.Reason), n.NextStep)
}

type gapNews struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"` // of the latest
	Count  int    `json:"count"`
}

func (n gapNews) sentence(installation string) string {
	what := "installation " + installation + " tells of " + strings.ReplaceAll(n.Code, "_", " ")
	if n.Count > 1 {
		what += fmt.Sprintf(", %d times", n.Count)
	}
	return because(what, n.Detail, "")
}

type targetNews struct {
	Target    string  `json:"target"`
	From      string  `json:"from"`
	To        string  `json:"to"` // ok, down, disabled, removed
	Reason    string  `json:"reason,omitempty"`
	Since     instant `json:"since"`
	DownSince instant `json:"down_since,omitzero"`
	NextStep  string  `json:"next_step,omitempty"`
}

func (n targetNews) sentence(string) string {
	if !n.DownSince.IsZero() {
		return "target " + n.Target + " is " + n.To + " again" + after(n.DownSince, n.Since)
	}
	return because("target "+n.Target+" is "+n.To, n.Reason, n.NextStep)
}

// targetWord is the state of a circuit in the words of leasehold status.
func targetWord(s delivery.CircuitState) string {
	switch s {
	case delivery.Open:
		return "down"
	case delivery.Disabled:
		return "disabled"
	case delivery.Unknown:
		return "removed"
	default:
		return "ok"
	}
}

type deadNews struct {
	Target   string `json:"target"`
	Count    int    `json:"count"`           // since the last one that was told
	Event    string `json:"event,omitempty"` // the latest, and so are the next four
	Delivery string `json:"delivery"`
	Attempts int    `json:"attempts"`
	Reason   string `json:"reason"`
	NextStep string `json:"next_step"`
}

func (n deadNews) sentence(string) string {
	what := "a delivery to " + n.Target + " was given up"
	if n.Count > 1 {
		what = fmt.Sprintf("%d deliveries to %s were given up", n.Count, n.Target)
	}
	return because(what, n.Reason, n.NextStep)
}

type backlogNews struct {
	Count    int64  `json:"count"` // since the last one that was told
	Reason   string `json:"reason"`
	NextStep string `json:"next_step"`
}

func (n backlogNews) sentence(string) string {
	return because(backlog.Words(n.Count), "what waits passed delivery.backlog_max", n.NextStep)
}

type storeNews struct {
	To        string  `json:"to"` // takes_nothing, takes
	Reason    string  `json:"reason,omitempty"`
	Detail    string  `json:"detail,omitempty"`
	Since     instant `json:"since"`
	DownSince instant `json:"down_since,omitzero"`
	NextStep  string  `json:"next_step,omitempty"`
}

func (n storeNews) sentence(string) string {
	if !n.DownSince.IsZero() {
		return "the store takes everything again" + after(n.DownSince, n.Since)
	}
	return because("the store takes nothing", n.Detail, n.NextStep)
}

type nodeNews struct {
	Event     string  `json:"event"` // started, upgraded, stopping, status
	Version   string  `json:"version,omitempty"`
	Previous  string  `json:"previous_version,omitempty"`
	What      string  `json:"what,omitempty"` // status: clock, task NAME
	State     string  `json:"state,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Since     instant `json:"since,omitzero"`
	DownSince instant `json:"down_since,omitzero"`
	NextStep  string  `json:"next_step,omitempty"`
}

func (n nodeNews) sentence(string) string {
	switch n.Event {
	case "started":
		return "leasehold " + n.Version + " has started"
	case "upgraded":
		return "leasehold " + n.Version + " has started, in the place of " + n.Previous
	case "stopping":
		return because("leasehold "+n.Version+" stops", n.Reason, "")
	default:
		return because(n.What+" is "+n.State, n.Reason, n.NextStep)
	}
}
