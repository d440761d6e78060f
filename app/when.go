package app

import (
	"fmt"
	"strings"
	"time"

	"leasehold/config"
)

// moment reads a time as people say one: RFC 3339, a local date or time of day, or
// how long ago. A time of day is the latest that has been or, with after, the first
// one after that: --since 23:00 --until 01:00 is two hours.
func moment(text string, now, after time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	local := now.Location()
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, local); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return timeOfDay(t, now, after), nil
		}
	}
	var d config.Duration
	if err := d.UnmarshalText([]byte(strings.TrimSuffix(text, " ago"))); err == nil && d >= 0 {
		return now.Add(-d.Std()), nil
	}
	return time.Time{}, fmt.Errorf(`must be a time such as 02:00, 90m (ago), "2026-11-30 02:00" or 2026-11-30T02:00:00Z (got %q)`, text)
}

// timeOfDay is the day on which it was, or will be, that time.
func timeOfDay(t, now, after time.Time) time.Time {
	on := func(day time.Time) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
	}
	if !after.IsZero() {
		after = after.In(now.Location())
		if first := on(after); first.After(after) {
			return first
		}
		return on(after.AddDate(0, 0, 1))
	}
	if today := on(now); !today.After(now) {
		return today
	}
	return on(now.AddDate(0, 0, -1))
}
