package delivery

import (
	"testing"
	"time"
)

// Post is the benchmark's plain client.
var Post = post

// Rates are what a benchmark reports.
type Rates struct{ rates }

// Add adds a round.
func (r *Rates) Add(n int, took, plain time.Duration) { r.add(n, took, plain) }

// Report reports all rounds.
func (r *Rates) Report(b *testing.B) { b.Helper(); r.report(b) }
