package app

import (
	"strings"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	zone := time.FixedZone("there", 3600)
	now := time.Date(2026, 11, 30, 10, 30, 0, 0, zone)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, zone) }
	var none time.Time
	for _, c := range []struct {
		name, text string
		after      time.Time
		want       time.Time
	}{
		{"a time of day that has been is today's", "02:00", none, at(30, 2, 0)},
		{"the present minute has been", "10:30", none, at(30, 10, 30)},
		{"one that is to come is yesterday's", "23:15", none, at(29, 23, 15)},
		{"seconds may be said", "02:00:00", none, at(30, 2, 0)},
		{"the end of a window is the first such time after its begin", "01:00", at(29, 23, 0), at(30, 1, 0)},
		{"an end may be to come", "12:00", at(30, 8, 0), at(30, 12, 0)},
		{"the same time of day is a day later", "23:00", at(28, 23, 0), at(29, 23, 0)},
		{"the zone of the begin does not matter", "01:00", at(29, 23, 0).UTC(), at(30, 1, 0)},
		{"a duration is how long ago", "90m", none, at(30, 9, 0)},
		{"with the word, too", "90m ago", none, at(30, 9, 0)},
		{"days", "2d", none, at(28, 10, 30)},
		{"a date is its midnight here", "2026-11-29", none, at(29, 0, 0)},
		{"a date with a time", "2026-11-29 05:06", none, at(29, 5, 6)},
		{"a date with a T", "2026-11-29T05:06", none, at(29, 5, 6)},
		{"RFC 3339 has its own zone", "2026-11-29T05:06:00Z", none, at(29, 6, 6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := moment(c.text, now, c.after)
			if err != nil || !got.Equal(c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
	for _, text := range []string{"", "soon", "25:00", "-5m", "2026-13-01", "5"} {
		t.Run("not a time: "+text, func(t *testing.T) {
			if got, err := moment(text, now, none); err == nil || !strings.Contains(err.Error(), "must be a time such as") {
				t.Errorf("got %v, %v, want an error that shows the forms", got, err)
			}
		})
	}
}
