// Package human says times, sizes and texts as people read them in a line or a
// table: rounded, short, and safe to print. What a program reads goes as JSON.
package human

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Printable keeps what a platform or a stranger sent from moving the cursor,
// breaking the row, or showing as nothing.
func Printable(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, s)
}

// Short cuts a text to n runes.
func Short(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// Ago is a time as people say it; "-" for never.
func Ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Span(time.Since(t)) + " ago"
}

// In is a time to come; "-" for none.
func In(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if d := time.Until(t); d > 0 {
		return "in " + Span(d)
	}
	return "now"
}

// Span is a duration in its largest unit, which is all that a table has room for.
func Span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// Bytes is a size in units of 1024, rounded up within the first: what is there is
// never "0 kB".
func Bytes(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d kB", (n+1023)>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MB", n>>20)
	default:
		return fmt.Sprintf("%d GB", n>>30)
	}
}
