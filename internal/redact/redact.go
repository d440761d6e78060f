// Package redact takes secret values out of whatever leaves the program.
//
// It works by value: every secret that was resolved is registered once, and is
// replaced wherever its text turns up, plain or escaped as a URL, a JSON string
// or a Go string would hold it. It is the last line, not the first: a secret has
// a type that prints as [redacted], and code that never puts one into a text
// needs nothing from here. It cannot see a value that was hashed, cut in two or
// encoded in another way.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Placeholder stands where a secret stood.
const Placeholder = "[redacted]"

// MinLength is the shortest value that is registered, in bytes. A shorter one
// ("on", "1234") is part of too many honest words: replacing it would ruin the log
// and tell, by the holes, what it is. Whoever registers it is told and can tell
// people to choose a longer one.
const MinLength = 6

// Redactor knows the secret values of a process. It is safe for concurrent use.
type Redactor struct {
	mu     sync.RWMutex
	values map[string]bool // every form of every secret
	built  *strings.Replacer
}

// New makes a Redactor that knows no secret.
func New() *Redactor { return &Redactor{values: map[string]bool{}} }

// Add registers a secret's value and reports whether it will be replaced: false
// means that it is shorter than MinLength. White space around it does not count.
func (r *Redactor) Add(value string) bool {
	value = strings.TrimSpace(value)
	if len(value) < MinLength {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values[value] {
		return true
	}
	for _, form := range forms(value) {
		r.values[form] = true
	}
	r.built = nil
	return true
}

// String returns s with every registered secret replaced.
func (r *Redactor) String(s string) string {
	if s == "" {
		return s
	}
	return r.replacer().Replace(s)
}

// replacer is rebuilt at the first use after an Add, not at each: a thousand
// installations register a thousand values before the first line is logged.
func (r *Redactor) replacer() *strings.Replacer {
	r.mu.RLock()
	built := r.built
	r.mu.RUnlock()
	if built != nil {
		return built
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	values := make([]string, 0, len(r.values))
	for v := range r.values {
		values = append(values, v)
	}
	// Of two secrets that begin alike the longer one is tried first.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, Placeholder)
	}
	r.built = strings.NewReplacer(pairs...)
	return r.built
}

// forms are the ways in which a value is written inside another text.
func forms(value string) []string {
	all := []string{
		value, url.QueryEscape(value), url.PathEscape(value), inside(strconv.Quote(value)),
		base64.StdEncoding.EncodeToString([]byte(value)), // a []byte in JSON
	}
	if b, err := json.Marshal(value); err == nil {
		all = append(all, inside(string(b)))
	}
	return all
}

func inside(quoted string) string { return quoted[1 : len(quoted)-1] }
