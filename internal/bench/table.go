package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	what     string
	measured string
	beside   string // what it is compared with, and that one's number
	ratio    string // measured by what it stands beside, or else by the target; "" = none
	target   string // "" = none is promised
	verdict  verdict
}

type verdict string

const (
	untold verdict = ""     // there is no target
	met    verdict = "ok"   //
	missed verdict = "MISS" // measured properly, and not good enough
	failed verdict = "FAIL" // it did not work
)

// judge tells whether a target was met.
func judge(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

func printTable(out io.Writer, head string, rows []row) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) {
		for i, c := range cells {
			if c == "" {
				c = "-"
			}
			if i > 0 {
				c = "\t" + c
			}
			_, _ = io.WriteString(t, c) // Flush returns what went wrong
		}
		_, _ = io.WriteString(t, "\n")
	}
	_, _ = fmt.Fprintln(t, head)
	line("what", "measured", "beside", "ratio", "target", "met")
	for _, r := range rows {
		line(r.what, r.measured, r.beside, r.ratio, r.target, string(r.verdict))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

// median of values, which it sorts; of an even number of them the lower one.
func median[T interface{ ~int64 | ~float64 }](values []T) T {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// count writes a number with separators between the thousands.
func count(n float64) string {
	s := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a number of bytes in the unit that shows it.
func size(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", n/1e3)
	default:
		return fmt.Sprintf("%.0f B", n)
	}
}
