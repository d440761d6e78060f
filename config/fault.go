package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a file. Line and Col count from 1, Col in bytes; both are 0
// where there is no line, as in the environment.
type Pos struct {
	File string
	Line int
	Col  int
}

// String returns file:line, short enough to stand in a sentence.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Fault is one thing that is wrong with the configuration.
type Fault struct {
	File    string // "environment" for a variable; "" when a value was set by code
	Line    int    // from 1; 0 = none
	Col     int    // in bytes, from 1; 0 = none
	Key     string // lease.ttl, or installation "acme": app_token; "" for a whole file
	Message string // what is wrong
	Hint    string // what to write instead; "" when nobody can tell
}

// String returns file:line:column: key: message (hint).
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Col)
		}
		b.WriteString(": ")
	}
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Faults is everything that is wrong, by position: files in the order they were
// read, the environment last.
type Faults []Fault //nolint:errname // the faults of a config are a list first, an error second

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// sort puts the faults in order of position; files gives the order of the files.
func (f Faults) sort(files []string) {
	order := make(map[string]int, len(files)+1)
	for i, name := range files {
		order[name] = i + 1
	}
	order[environment] = len(files) + 1
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(order[a.File], order[b.File]),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			strings.Compare(a.Key, b.Key), strings.Compare(a.Message, b.Message),
		)
	})
}

// err is f as an error: nil when there is no fault.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
