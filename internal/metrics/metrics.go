// Package metrics counts in memory, and writes what it counted in the text format of
// Prometheus, each family with its help and its type.
//
// It writes no disk and starts no goroutine. Labels must come from a set that the
// config bounds (types, states, targets, tasks), never from what strangers send.
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Set is what one page shows. All methods of it and of its families are safe for
// concurrent use.
type Set struct {
	families []*Family
}

// Family is a metric with all its labels' values.
type Family struct {
	Name, Kind, Help string
	Labels           []string

	bounds []float64 // of a histogram's buckets

	mu     sync.Mutex // guards what follows
	values map[string]float64
	seen   []int64 // by bucket, the last one without a bound
	sum    float64
}

// Counter adds a family whose values only grow; by convention its name ends in _total.
func (s *Set) Counter(name, help string, labels ...string) *Family {
	return s.add(name, "counter", help, labels)
}

// Gauge adds a family whose values go up and down.
func (s *Set) Gauge(name, help string, labels ...string) *Family {
	return s.add(name, "gauge", help, labels)
}

// Histogram adds a family without labels that sorts what it observes into buckets, each
// up to one of the bounds.
func (s *Set) Histogram(name, help string, bounds ...float64) *Family {
	f := s.add(name, "histogram", help, nil)
	f.bounds, f.seen = bounds, make([]int64, len(bounds)+1)
	return f
}

func (s *Set) add(name, kind, help string, labels []string) *Family {
	f := &Family{Name: name, Kind: kind, Help: help, Labels: labels, values: map[string]float64{}}
	if kind == "counter" && len(labels) == 0 {
		f.values[""] = 0 // it is there before anything happened
	}
	s.families = append(s.families, f)
	return f
}

// Families are the families in the order in which they were added.
func (s *Set) Families() []*Family { return s.families }

// Add adds to a value.
func (f *Family) Add(v float64, labels ...string) {
	key := f.key(labels)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[key] += v
}

// Set sets a value.
func (f *Family) Set(v float64, labels ...string) {
	key := f.key(labels)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[key] = v
}

// Clear forgets every value: of a family that is filled anew for each page.
func (f *Family) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.values)
}

// Observe adds to a histogram.
func (f *Family) Observe(v float64) {
	at := sort.SearchFloat64s(f.bounds, v) // a value on a bound is in the bucket that ends there
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[at]++
	f.sum += v
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// key is how the labels are written.
func (f *Family) key(labels []string) string {
	if len(labels) != len(f.Labels) {
		panic(fmt.Sprintf("metric %s has %d labels, got %d", f.Name, len(f.Labels), len(labels)))
	}
	if len(labels) == 0 {
		return ""
	}
	pairs := make([]string, len(labels))
	for i, v := range labels {
		pairs[i] = f.Labels[i] + `="` + escape.Replace(strings.ToValidUTF8(v, "\uFFFD")) + `"`
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// Write writes the page.
func (s *Set) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, f := range s.families {
		f.write(b)
	}
	return b.Flush()
}

// write writes a family; b keeps the first error.
func (f *Family) write(b *bufio.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.values) == 0 && f.Kind != "histogram" {
		return
	}
	_, _ = fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.Name, f.Help, f.Name, f.Kind)
	if f.Kind == "histogram" {
		var n int64
		for i, bound := range f.bounds {
			n += f.seen[i]
			_, _ = fmt.Fprintf(b, "%s_bucket{le=%q} %d\n", f.Name, number(bound), n)
		}
		n += f.seen[len(f.bounds)]
		_, _ = fmt.Fprintf(b, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %s\n%s_count %d\n", f.Name, n, f.Name, number(f.sum), f.Name, n)
		return
	}
	keys := make([]string, 0, len(f.values))
	for key := range f.values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		_, _ = fmt.Fprintf(b, "%s%s %s\n", f.Name, key, number(f.values[key]))
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
