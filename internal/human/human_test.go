package human

import (
	"testing"
	"time"
)

func TestHuman(t *testing.T) {
	t.Run("nothing that a stranger wrote moves the cursor, or shows as nothing", func(t *testing.T) {
		for text, want := range map[string]string{"evil\x1b[2J\nname": "evil·[2J name", "": "-", "wörld": "wörld"} {
			if got := Printable(text); got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		}
	})
	t.Run("a text is cut by runes, and says so", func(t *testing.T) {
		if got := Short("wörld", 4); got != "wör…" {
			t.Errorf("got %q, want wör…", got)
		}
		if got := Short("wörld", 5); got != "wörld" {
			t.Errorf("got %q, want all of it", got)
		}
	})
	t.Run("spans are told in their largest unit", func(t *testing.T) {
		for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 3 * time.Minute: "3m", 30 * time.Hour: "30h", 49 * time.Hour: "2d"} {
			if got := Span(d); got != want {
				t.Errorf("%v: got %s, want %s", d, got, want)
			}
		}
	})
	t.Run("a moment is told by its distance, and none by a dash", func(t *testing.T) {
		now := time.Now()
		for got, want := range map[string]string{
			Ago(time.Time{}): "-", Ago(now.Add(-3 * time.Hour)): "3h ago", In(now.Add(-time.Second)): "now", In(now.Add(90 * time.Hour)): "in 3d",
		} {
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if got := In(time.Time{}); got != "-" {
			t.Errorf("none: got %s, want -", got)
		}
	})
	t.Run("a size is told in units of 1024", func(t *testing.T) {
		for n, want := range map[int64]string{0: "0 kB", 1: "1 kB", 40 << 20: "40 MB", 10 << 30: "10 GB"} {
			if got := Bytes(n); got != want {
				t.Errorf("%d: got %s, want %s", n, got, want)
			}
		}
	})
}
