package herald

import (
	"log/slog"
	"time"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/delivery"
)

// Breaker stops answers that go round, as c says, and has it told.
func Breaker(c *config.Config, h *Herald, log *slog.Logger) *delivery.Breaker {
	return &delivery.Breaker{
		Limit: c.Delivery.LoopLimit, Turns: c.Delivery.LoopTurns, Quiet: c.Delivery.LoopQuiet.Std(),
		Told: func(l delivery.Loop, stopped bool) {
			if stopped {
				log.Warn("answers stopped", "installation", l.Installation, "conversation", l.Conversation, "reason", l.Reason, "next_step", loopStep)
			} else {
				log.Info("answers resumed", "installation", l.Installation, "conversation", l.Conversation)
			}
			h.Loop(l, stopped)
		},
	}
}

const loopStep = "let one of the two ignore what bots say; it goes on by itself once nobody has tried to answer for delivery.loop_quiet"

// LoopTroubles are the conversations that are stopped.
func LoopTroubles(b *delivery.Breaker) (all []admin.Trouble) {
	for _, l := range b.Stopped() {
		all = append(all, admin.Trouble{What: "conversation " + l.Conversation + " of " + l.Installation, State: "stopped", Reason: l.Reason, NextStep: loopStep})
	}
	return all
}

type loopNews struct {
	Conversation string  `json:"conversation"`
	To           string  `json:"to"` // stopped, resumed
	Reason       string  `json:"reason,omitempty"`
	Since        instant `json:"since"`
	DownSince    instant `json:"down_since,omitzero"`
	NextStep     string  `json:"next_step,omitempty"`
}

func (n loopNews) sentence(installation string) string {
	what := "conversation " + n.Conversation + " of installation " + installation + " is " + n.To
	if !n.DownSince.IsZero() {
		return what + after(n.DownSince, n.Since)
	}
	return because(what, n.Reason, n.NextStep)
}

// Loop tells of a conversation that is stopped, or goes on. It is told through a
// goroutine of the desk's: whoever counts answers must not wait.
func (h *Herald) Loop(l delivery.Loop, stopped bool) {
	now := time.Now()
	key := "loop " + l.Installation + " " + l.Conversation
	if !stopped {
		h.desk.Over(key, func(since time.Time) {
			h.say("system.loop", l.Installation, "", now, loopNews{Conversation: l.Conversation, To: "resumed", Since: instant{now}, DownSince: instant{since}})
		})
		return
	}
	h.desk.Trouble(key, true, func(since time.Time) {
		h.say("system.loop", l.Installation, "", now, loopNews{Conversation: l.Conversation, To: "stopped", Reason: l.Reason, Since: instant{since}, NextStep: loopStep})
	})
}
