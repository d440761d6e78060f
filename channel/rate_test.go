package channel_test

import (
	"strings"
	"testing"
	"time"

	"leasehold/channel"
)

func TestRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]channel.Rate{
		"":              {},
		"30/s":          {N: 30, Per: time.Second},
		"20/m":          {N: 20, Per: time.Minute},
		"1000/h":        {N: 1000, Per: time.Hour},
		"5/10s":         {N: 5, Per: 10 * time.Second},
		"7/10m":         {N: 7, Per: 10 * time.Minute},
		"1/1m30s":       {N: 1, Per: 90 * time.Second},
		"20/m burst 5":  {N: 20, Per: time.Minute, Burst: 5},
		"100/24h":       {N: 100, Per: 24 * time.Hour},
		"20/m burst 20": {N: 20, Per: time.Minute, Burst: 20},
	} {
		t.Run(text+" is read, and written as it was", func(t *testing.T) {
			t.Parallel()
			var got channel.Rate
			if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
				t.Errorf("got %+v and %v, want %+v", got, err, want)
			}
			if got.String() != text {
				t.Errorf("got %q, want %q", got.String(), text)
			}
		})
	}
	t.Run("a day is a span, too", func(t *testing.T) {
		t.Parallel()
		var got channel.Rate
		if err := got.UnmarshalText([]byte("100/1d")); err != nil || got.Per != 24*time.Hour {
			t.Errorf("got %+v and %v, want a day", got, err)
		}
	})
	for text, want := range map[string]string{
		"30": "must be a rate", "30/": "must be a rate", "/s": "must be a rate", "x/s": "must be a rate", "30/x": "must be a rate",
		"0/s": "from 1 to", "-1/s": "from 1 to", "9999999/s": "from 1 to", "1/-1s": "must be a rate", "1/0s": "counted in", "1/2d": "counted in", "1/1ns": "counted in",
		"5/s burst 6": "at most 5", "5/s burst 0": "must be a rate", "5/s burst": "must be a rate", " 5/s": "must be a rate", "5/s burst -1": "must be a rate",
	} {
		t.Run("what is no rate is refused: "+text, func(t *testing.T) {
			t.Parallel()
			var got channel.Rate
			if err := got.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %+v and %v, want %q", got, err, want)
			}
		})
	}
}
