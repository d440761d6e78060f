package app

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"leasehold/internal/human"
)

// fields writes one thing for people, a line for each field that has a value:
// name, value, name, value, …
func (p *program) fields(nameValue ...string) {
	width := 0
	for i := 0; i+1 < len(nameValue); i += 2 {
		if nameValue[i+1] != "" {
			width = max(width, len(nameValue[i]))
		}
	}
	for i := 0; i+1 < len(nameValue); i += 2 {
		if name, value := nameValue[i], nameValue[i+1]; value != "" {
			p.line("%-*s  %s", width, name, human.Printable(value))
		}
	}
}

// stamp is an instant for people: UTC, as in the log, with how long ago it was; ""
// for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	when := human.Ago(t)
	if time.Until(t) > 0 {
		when = human.In(t)
	}
	return t.UTC().Format(time.RFC3339) + " (" + when + ")"
}

// count is "" for none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func pairs(m map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%s", name, m[name]))
	}
	return strings.Join(all, ", ")
}
