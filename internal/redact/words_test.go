package redact_test

import (
	"testing"

	"leasehold/internal/redact"
)

func FuzzWords(f *testing.F) {
	const secret = "planted-token-1234567890"
	w := redact.NewWords()
	w.Hide(secret)
	f.Add("token "+secret+" is wrong", 10)
	f.Add("\xff\x00\n"+secret[:12], 3)
	f.Fuzz(func(t *testing.T, said string, at int) {
		if at >= 0 && at < len(said) {
			said = said[:at] + secret + said[at:]
		}
		got := w.Show(said)
		if len(got) > redact.MaxWords+len("…") {
			t.Fatalf("got %d bytes, want at most %d", len(got), redact.MaxWords)
		}
		for i := 0; i+len(secret) <= len(got); i++ {
			if got[i:i+len(secret)] == secret {
				t.Fatalf("%q: got %q, want no secret", said, got)
			}
		}
	})
}
