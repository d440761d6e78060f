package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"30s": "30s", "5m": "5m", "1h": "1h", "7d": "7d", "24h": "1d", "1d12h": "1d12h", "1.5d": "1d12h", "90m": "1h30m",
		"1h0m5s": "1h0m5s", "10h": "10h", "1m30s": "1m30s", "250ms": "250ms", "0": "0s", "0s": "0s", "0d": "0s", "-5s": "-5s", "-7d": "-7d",
		"-1d12h": "-1d12h", "2h45m30.5s": "2h45m30.5s", "1d1ns": "1d1ns",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%q: got %s, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "d", "s", "30", "1d-5s", "1d+5s", "--5s", "-", "1e3d", "0x1d", "infd", "nand", "1d1d", "1w", "1 d", "1d 2h", "1.d.", "+d", "five"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %s, want it refused", text, d)
		}
	}
	for _, text := range []string{"106752d", "999999999999999d", "106751d24h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != errLongDuration { //nolint:errorlint // the very error
			t.Errorf("%q: got %s, %v; want it too long", text, d, err)
		}
	}
	t.Run("what is written is read again", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := Duration(rapid.Int64Range(-int64(time.Hour)*24*3650, int64(time.Hour)*24*3650).Draw(t, "d"))
			b, _ := d.MarshalText()
			var got Duration
			if err := got.UnmarshalText(b); err != nil || got != d {
				t.Fatalf("%d as %s: got %d, %v", int64(d), b, int64(got), err)
			}
		})
	})
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"16MB": 16e6, "64MiB": 64 << 20, "512kB": 512e3, "512KB": 512e3, "1KiB": 1024, "0B": 0, "1.5GiB": 3 << 29, "2 TB": 2e12, "1TiB": 1 << 40, "7b": 7, "-1MB": -1e6,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: got %d, %v; want %d", text, s, err, want)
		}
		b, _ := s.MarshalText()
		var again Size
		if err := again.UnmarshalText(b); err != nil || again != s {
			t.Errorf("%q written as %s: got %d, %v; want %d", text, b, again, err, s)
		}
	}
	for _, text := range []string{"", "16", "MB", "16M", "16 bytes", "1e3B", "0x1B", "..B", "9999999TiB", "-9999999TiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %d, want it refused", text, s)
		}
	}
}

func TestClosest(t *testing.T) {
	names := []string{"ttl", "timeout", "renew_every", "slack", "name"}
	for s, want := range map[string]string{
		"tttl": "ttl", "timeuot": "timeout", "TIMEOUT": "timeout", "renew_evry": "renew_every", "slakc": "slack", "nme": "name",
		"x": "", "": "", "telegram": "", "t": "", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz": "",
	} {
		if got, _ := closest(s, names); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"abc", "acb", 1}, {"abc", "axc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestLease(t *testing.T) {
	l := Default().Lease
	if got, want := l.Trust(), 26940*time.Millisecond; got != want {
		t.Errorf("got trust of %s, want %s", got, want)
	}
	if got, want := l.Need(), 16*time.Second; got != want {
		t.Errorf("got need of %s, want %s", got, want)
	}
	t.Run("the ttl that is suggested is safe, and a second less is not", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := func(name string, low, high int64) Duration {
				return Duration(rapid.Int64Range(low, high).Draw(t, name) * int64(time.Millisecond))
			}
			l := Lease{RenewEvery: s("renew", 1, 60_000), AttemptTimeout: s("attempt", 1, 20_000), Margin: s("margin", 2000, 10_000)}
			l.TTL = l.least(l.Need() + l.Margin.Std())
			if message, _ := l.unsafe(); message != "" {
				t.Fatalf("%+v: got %s, want it safe", l, message)
			}
			if l.TTL -= Duration(time.Second); l.Need() <= l.Trust() {
				t.Fatalf("%+v: got a suggestion a second too long", l)
			}
		})
	})
}
