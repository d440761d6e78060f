package channel_test

import (
	"encoding/json"
	"testing"
	"time"

	"leasehold/channel"
)

func TestDurationReadsWhatConfigReads(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour,
		"1.5d": 36 * time.Hour, "0s": 0, "0": 0, "0d": 0, "100ms": 100 * time.Millisecond, "36500d": 36500 * day,
	} {
		var got channel.Duration
		if err := got.UnmarshalText([]byte(text)); err != nil || got.Std() != want {
			t.Errorf("%q: got %s and error %v, want %s", text, got.Std(), err, want)
		}
	}
	for text, want := range map[string]string{
		"-5s": "must not be negative", "-1d": "must not be negative", "-1d12h": "must not be negative",
		"106752d": "is too long a duration; the most is 292 years", "100000d200000h": "is too long a duration; the most is 292 years",
		"1d-1h": `must be a duration such as "30s", "5m", "1h" or "7d"`,
	} {
		var got channel.Duration
		if err := got.UnmarshalText([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %s and error %v, want %q", text, got.Std(), err, want)
		}
	}
	for _, text := range []string{"", "5", "d", "xd", "1e3d", "0x1d", "nand", "infd", "1_0d", "7d5", "1d1d", "s", "7 d", "1d "} {
		got := channel.Duration(time.Hour)
		if err := got.UnmarshalText([]byte(text)); err == nil || got.Std() != time.Hour {
			t.Errorf("%q: got %s and error %v, want an error and the value as it was", text, got.Std(), err)
		}
	}
}

func TestADurationIsTextInJSON(t *testing.T) {
	var d channel.Duration
	if err := json.Unmarshal([]byte(`"7d"`), &d); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`30`), &d); err == nil {
		t.Error("got no error for a bare number, want one")
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again channel.Duration
	if err := json.Unmarshal(b, &again); err != nil || again != d {
		t.Errorf("got %s back from %s and error %v, want the same", again.Std(), b, err)
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30s", "1d12h", "-1d", "1.5d", "999999d", "d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d channel.Duration
		if err := d.UnmarshalText([]byte(s)); err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q: got %s, want nothing negative", s, d.Std())
		}
		b, _ := d.MarshalText()
		var again channel.Duration
		if err := again.UnmarshalText(b); err != nil || again != d {
			t.Fatalf("%q: got %s back from %s and error %v, want the same", s, again.Std(), b, err)
		}
	})
}
