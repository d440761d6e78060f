package app

import (
	"strconv"
	"time"

	"leasehold/delivery"
)

// What stands under system in the envelope of each type. docs/delivery.md explains
// them to whoever receives them.

// instant is a time as an envelope writes it; the zero one is left out.
type instant struct{ time.Time }

// MarshalJSON writes it in UTC, with milliseconds.
func (m instant) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, m.UTC().Format(delivery.Timestamp)), nil
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

type gapNews struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"` // of the latest
	Count  int    `json:"count"`
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

type storeNews struct {
	To        string  `json:"to"` // takes_nothing, takes
	Reason    string  `json:"reason,omitempty"`
	Detail    string  `json:"detail,omitempty"`
	Since     instant `json:"since"`
	DownSince instant `json:"down_since,omitzero"`
	NextStep  string  `json:"next_step,omitempty"`
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
