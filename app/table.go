package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"leasehold/internal/human"
)

// table writes rows for people: aligned columns, a heading, no lines.
type table struct {
	rows  [][]string
	paint func(column int, cell string) string // on a terminal
}

func newTable(heading ...string) *table { return &table{rows: [][]string{heading}} }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = human.Printable(c)
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
