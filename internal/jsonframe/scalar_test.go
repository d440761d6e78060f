package jsonframe

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	want := time.Date(2023, 11, 14, 22, 13, 20, 500_000_000, time.UTC)
	for _, s := range []string{"2023-11-14T22:13:20.5Z", "2023-11-14T23:13:20.5+01:00", "1700000000.5", "1700000000500", "1700000000500000", "1700000000500000000"} {
		if got := ParseTime(s); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
	for _, s := range []string{"", "soon", "0", "-1", "NaN", "1e300", "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+23:59"} {
		if got := ParseTime(s); !got.IsZero() {
			t.Errorf("%q: got %s, want no time", s, got)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	f.Add("1700000000.5")
	f.Add("0000-01-01T00:00:00+23:59")
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := json.Marshal(ParseTime(s)); err != nil {
			t.Fatalf("%q: got a time that JSON cannot hold: %s, %v", s, b, err)
		}
	})
}

func TestShortID(t *testing.T) {
	long := strings.Repeat("i", MaxID+1)
	if got := ShortID(long); got == ShortID(long+"i") || len(got) > MaxID {
		t.Errorf("got %q for a long id, want one of its own, and short", got)
	}
	if got := ShortID(long[1:]); got != long[1:] {
		t.Errorf("got %q, want an id of %d bytes as it is", got, MaxID)
	}
}

func TestAPositionIsOfItsPlace(t *testing.T) {
	for _, at := range []string{`"a\"b"`, `42`} {
		cursor := Cursor("h/p", json.RawMessage(at))
		if got := Position("h/p", cursor); string(got) != at {
			t.Errorf("got %s back, want %s", got, at)
		}
		if got := Position("h/q", cursor); got != nil {
			t.Errorf("got %s at another place, want none", got)
		}
	}
	for _, cursor := range []string{"", "x", `{"place":"h/p"}`, `{"place":"h/p","at":null}`, `{"place":"h/p","at":""}`, `{"place":"h/p","at":{}}`} {
		if got := Position("h/p", []byte(cursor)); got != nil {
			t.Errorf("%s: got %s, want no position", cursor, got)
		}
	}
}
