package app

import (
	"testing"
	"time"

	"leasehold/delivery"
)

func TestTargetState(t *testing.T) {
	since := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	failing := delivery.TargetStats{Name: "app", State: delivery.Closed, LastError: "answered 404: not found", FailingSince: since, NextStep: "correct it"}
	with := func(s delivery.TargetStats, change func(*delivery.TargetStats)) delivery.TargetStats {
		change(&s)
		return s
	}
	for _, c := range []struct {
		name          string
		is            delivery.TargetStats
		state, reason string
	}{
		{"nothing failed", delivery.TargetStats{State: delivery.Closed, Waiting: 3}, "ok", ""},
		{"it failed, and nothing waits", failing, "ok", ""},
		{"one that waits fails", with(failing, func(s *delivery.TargetStats) { s.Waiting = 1 }), "failing", "1 delivery waits, the last attempt failed: answered 404: not found"},
		{"many that wait fail", with(failing, func(s *delivery.TargetStats) { s.Waiting = 14 }), "failing", "14 deliveries wait, the last attempt failed: answered 404: not found"},
		{"others are in the store", with(failing, func(s *delivery.TargetStats) { s.Waiting, s.More = 256, true }), "failing", "more than 256 deliveries wait, the last attempt failed: answered 404: not found"},
		{"a system event that waits fails", with(failing, func(s *delivery.TargetStats) { s.Announcements = 1 }), "failing", "1 system event waits, the last attempt failed: answered 404: not found"},
		{"system events that wait fail", with(failing, func(s *delivery.TargetStats) { s.Announcements = 3 }), "failing", "3 system events wait, the last attempt failed: answered 404: not found"},
		{"it cannot be reached", with(failing, func(s *delivery.TargetStats) { s.State, s.Reason, s.Waiting = delivery.Open, "refused", 1 }), "down", "refused"},
		{"it wants nothing", delivery.TargetStats{State: delivery.Disabled, Reason: "answered 410: gone"}, "disabled", "answered 410: gone"},
		{"nobody knows it", delivery.TargetStats{State: delivery.Unknown, Reason: "target not configured"}, "unknown", "target not configured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := targetState(c.is)
			if got.State != c.state || got.Reason != c.reason {
				t.Errorf("got %s (%s), want %s (%s)", got.State, got.Reason, c.state, c.reason)
			}
			if got.State == "ok" && got.NextStep != "" || got.NextStep != "" && got.NextStep != c.is.NextStep {
				t.Errorf("next step: got %q, want delivery's %q unless it is ok", got.NextStep, c.is.NextStep)
			}
			if got.State == "failing" && got.NextStep == "" {
				t.Error("next step: got none, want delivery's")
			}
			if got.State == "failing" && !got.Since.Equal(since) {
				t.Errorf("since: got %v, want %v", got.Since, since)
			}
		})
	}
}
