package handshake

import (
	"net/http"
	"testing"
)

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "-1", "99999999999999", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", ""} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, after, date string) {
		got := RetryAfter(&http.Response{Header: http.Header{"Retry-After": {after}, "Date": {date}}}, Sulk)
		if got < 0 || got > MaxWait {
			t.Fatalf("%q, %q: got %s, want 0 to %s", after, date, got, MaxWait)
		}
	})
}
