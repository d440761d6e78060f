package metrics_test

import (
	"strings"
	"sync"
	"testing"

	"leasehold/internal/metrics"
)

func TestWrite(t *testing.T) {
	t.Run("a page has help, type and every value in order, with labels escaped", func(t *testing.T) {
		var s metrics.Set
		events := s.Counter("x_events_total", "Events.")
		links := s.Gauge("x_links", "Links.", "type", "state")
		took := s.Histogram("x_seconds", "Time.", 0.1, 1)
		s.Gauge("x_empty", "Nothing yet.", "a")
		links.Set(2, "b", "up")
		links.Set(1, "a\"\\\n", "down")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				events.Add(1)
				took.Observe(0.1)
				took.Observe(5)
			})
		}
		all.Wait()
		var b strings.Builder
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		want := `# HELP x_events_total Events.
# TYPE x_events_total counter
x_events_total 4
# HELP x_links Links.
# TYPE x_links gauge
x_links{type="a\"\\\n",state="down"} 1
x_links{type="b",state="up"} 2
# HELP x_seconds Time.
# TYPE x_seconds histogram
x_seconds_bucket{le="0.1"} 4
x_seconds_bucket{le="1"} 4
x_seconds_bucket{le="+Inf"} 8
x_seconds_sum 20.4
x_seconds_count 8
`
		if got := b.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		links.Clear()
		b.Reset()
		if err := s.Write(&b); err != nil || strings.Contains(b.String(), "x_links") {
			t.Errorf("got %s, %v, want no links once they are forgotten", b.String(), err)
		}
	})
}
