package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// table writes rows for people: aligned columns, a heading, no lines.
type table struct {
	rows  [][]string
	paint func(column int, cell string) string // on a terminal
}

func newTable(heading ...string) *table { return &table{rows: [][]string{heading}} }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) {
	width := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			shown := cell
			if n > 0 && t.paint != nil {
				shown = t.paint(i, cell)
			}
			b.WriteString(shown)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		_, _ = fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// printable keeps what a platform or a stranger sent from moving the cursor,
// breaking the row, or showing as nothing.
func printable(s string) string {
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

// short cuts a text to n runes.
func short(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// ago is a time as people say it; "-" for never.
func ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(time.Since(t)) + " ago"
}

// in is a time to come; "-" for none.
func in(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if d := time.Until(t); d > 0 {
		return "in " + span(d)
	}
	return "now"
}

// span is a duration in its largest unit, which is all that a table has room for.
func span(d time.Duration) string {
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

// colors of a state; the words say the same, so nothing is lost without them.
const (
	green, yellow, red, plain = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
)

// painted colours one column of a table by the state in it, on a terminal whose
// user did not forbid it.
func (p *program) painted(t *table, column int) *table {
	if !p.colorful(p.Stdout) {
		return t
	}
	t.paint = func(i int, cell string) string {
		if i != column {
			return cell
		}
		switch cell {
		case "connected", "delivered", "sent", "ok", "running", "yes":
			return green + cell + plain
		case "blocked", "wedged", "dead", "refused", "unknown", "down", "failing":
			return red + cell + plain
		case "backoff", "connecting", "pending", "queued", "sending", "expired", "waits", "draining", "unclaimed", "not_running":
			return yellow + cell + plain
		}
		return cell
	}
	return t
}

// colorful reports whether w is a terminal that shows colors.
func (p *program) colorful(w io.Writer) bool {
	return terminal(w) && p.env("NO_COLOR") == "" && p.env("TERM") != "dumb"
}

func terminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// asJSON writes v as the API would, indented.
func (p *program) asJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
