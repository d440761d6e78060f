package app

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"leasehold/app/herald"
	"leasehold/engine"
)

var updateMetrics = flag.Bool("update", false, "write docs/metrics.md")

// A line of a page is one of these, and nothing else.
var (
	aboutLine  = regexp.MustCompile(`^# (HELP|TYPE) (leasehold_[a-z_]+) (\S.*)$`)
	sampleLine = regexp.MustCompile(`^(leasehold_[a-z_]+?)(_bucket|_sum|_count)?(\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\})? -?[0-9][0-9.e+-]*$`)
)

func TestMetrics(t *testing.T) {
	t.Run("docs/metrics.md has every metric and no other", func(t *testing.T) {
		var b strings.Builder
		b.WriteString(`# Metrics

Prometheus reads them from ` + "`/metrics`" + ` of the API, with a token of the scope ` + "`read`" + `, or over the local socket;
` + "`leasehold status --metrics`" + ` prints them. They are counted in memory, from the start of the process, and cost no disk write.
Each node tells of itself, unless the description says "of all nodes". Labels hold names of the config, types and states.

` + "```" + `
curl --unix-socket /var/lib/leasehold/leasehold.sock http://leasehold/metrics
` + "```" + `

| metric | type | labels | what it is |
| --- | --- | --- | --- |
`)
		for _, f := range newMeter().Families() {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, strings.Join(f.Labels, ", "), f.Help)
		}
		path := filepath.Join("..", "docs", "metrics.md")
		if *updateMetrics {
			if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != b.String() {
			t.Errorf("docs/metrics.md (%v) is not what the program has; run: go test ./app -run TestMetrics -update", err)
		}
	})

	t.Run("names, kinds and labels are as Prometheus wants them, and a page has nothing else", func(t *testing.T) {
		m := newMeter()
		kinds := map[string]string{}
		for _, f := range m.Families() {
			if kinds[f.Name] != "" {
				t.Errorf("%s is there twice", f.Name)
			}
			kinds[f.Name] = f.Kind
			if total := strings.HasSuffix(f.Name, "_total"); total != (f.Kind == "counter") {
				t.Errorf("%s is a %s", f.Name, f.Kind)
			}
			if f.Kind == "histogram" {
				f.Observe(0.2)
				continue
			}
			labels := make([]string, len(f.Labels))
			for i := range labels {
				labels[i] = "x"
			}
			f.Set(1.5e9, labels...)
		}
		var page strings.Builder
		if err := m.Write(&page); err != nil {
			t.Fatal(err)
		}
		told, sampled := map[string]string{}, map[string]bool{}
		for line := range strings.Lines(page.String()) {
			line = strings.TrimSuffix(line, "\n")
			if about := aboutLine.FindStringSubmatch(line); about != nil {
				if sampled[about[2]] {
					t.Errorf("%q stands behind a value of it", line)
				}
				if about[1] == "TYPE" {
					told[about[2]] = about[3]
				}
				continue
			}
			sample := sampleLine.FindStringSubmatch(line)
			if sample == nil || told[sample[1]] != kinds[sample[1]] || sample[2] != "" && told[sample[1]] != "histogram" {
				t.Errorf("got the line %q, want a value of a metric whose type stands before it", line)
				continue
			}
			sampled[sample[1]] = true
		}
		if len(sampled) != len(kinds) {
			t.Errorf("got values of %d metrics, want of all %d", len(sampled), len(kinds))
		}
	})

	t.Run("a link counts once for each change", func(t *testing.T) {
		m := newMeter()
		m.next = herald.New(func(s string) string { return s }, slog.New(slog.DiscardHandler))
		m.types.Store(&map[string]string{"acme": "websocket"})
		states := []engine.State{engine.Connecting, engine.Connected, engine.Connected, engine.Backoff, engine.Connecting, engine.Connected, engine.Wedged}
		var was engine.LinkStatus
		for _, state := range states {
			now := engine.LinkStatus{Installation: "acme", State: state}
			m.Link(was, now)
			was = now
		}
		var page strings.Builder
		if err := m.Write(&page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`leasehold_connects_total{type="websocket"} 2`, `leasehold_disconnects_total{type="websocket",to="backoff"} 1`,
			`leasehold_disconnects_total{type="websocket",to="wedged"} 1`, `leasehold_terms_wedged_total{type="websocket"} 1`,
		} {
			if !strings.Contains(page.String(), want+"\n") {
				t.Errorf("got\n%s\nwant %s in it", page.String(), want)
			}
		}
	})
}
