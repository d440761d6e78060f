package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// benchmarks runs Go benchmarks of a package, and returns each one's metrics by
// the name after the first slash: {"unchanged": {"ns/op": 251093}}. Of one that
// was run several times it is each metric's median.
func (b *bench) benchmarks(ctx context.Context, pkg, pattern string, flags ...string) (map[string]map[string]float64, error) {
	args := append([]string{"test", pkg, "-run", "^$", "-bench", pattern}, flags...)
	cmd := exec.CommandContext(ctx, "go", args...)
	// Its databases go where ours do.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+b.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	all := medians(string(out))
	if len(all) == 0 {
		return nil, fmt.Errorf("go %s: it printed no result\n%s", strings.Join(args, " "), out)
	}
	return all, nil
}

func medians(out string) map[string]map[string]float64 {
	runs := map[string]map[string][]float64{}
	for line := range strings.Lines(out) {
		name, metrics, ok := parse(line)
		if !ok {
			continue
		}
		if runs[name] == nil {
			runs[name] = map[string][]float64{}
		}
		for metric, v := range metrics {
			runs[name][metric] = append(runs[name][metric], v)
		}
	}
	all := map[string]map[string]float64{}
	for name, metrics := range runs {
		all[name] = map[string]float64{}
		for metric, values := range metrics {
			all[name][metric] = median(values)
		}
	}
	return all
}

// cpus is the number of CPUs at the end of a benchmark's name.
var cpus = regexp.MustCompile(`-\d+$`)

// parse reads a line such as "BenchmarkTick/full_list-2  188  6586179 ns/op".
func parse(line string) (name string, metrics map[string]float64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil, false
	}
	_, name, _ = strings.Cut(cpus.ReplaceAllString(fields[0], ""), "/")
	metrics = map[string]float64{}
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return "", nil, false
		}
		metrics[fields[i+1]] = v
	}
	return name, metrics, true
}

// need returns a metric, or an error that says that it is not there.
func need(all map[string]map[string]float64, name, metric string) (float64, error) {
	v, ok := all[name][metric]
	if !ok {
		return 0, fmt.Errorf("the benchmark %q told no %s", name, metric)
	}
	return v, nil
}

// bareMin is what accepting must reach of a bare loop's pace.
const bareMin = 0.7

// acceptRows measures how many events the store accepts from many producers,
// beside a bare loop of the same statements in the same process.
func acceptRows(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.benchmarks(ctx, "leasehold/store/sqlite", "^BenchmarkAccept$", "-count", "1", "-benchtime", fmt.Sprintf("%dx", b.count))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, load := range []string{"20 producers of 32", "256 producers of 1"} {
		name := strings.ReplaceAll(load, " ", "_")
		rate, err1 := need(all, name, "events/s")
		bare, err2 := need(all, name, "bare/s")
		ratio, err3 := need(all, name, "ratio")
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		rows = append(rows, row{
			what: "accepted, " + load, measured: count(rate) + " events/s", beside: "a bare insert loop: " + count(bare) + "/s",
			ratio: fmt.Sprintf("%.2f", ratio), target: fmt.Sprintf(">= %.1f", bareMin), verdict: judge(ratio >= bareMin),
		})
	}
	return rows, nil
}

// tickUnits is how many installations a tick is measured with.
const tickUnits = 10_000

// tickRows measures what a node does every five seconds: it lists, and decides.
func tickRows(ctx context.Context, b *bench) ([]row, error) {
	often := []string{"-benchtime", "200ms", "-count", strconv.Itoa(b.count)}
	core, err := b.benchmarks(ctx, "leasehold/engine", "^BenchmarkTick$", often...)
	if err != nil {
		return nil, err
	}
	list, err := b.benchmarks(ctx, "leasehold/store/sqlite", "^BenchmarkList$", often...)
	if err != nil {
		return nil, err
	}
	other, err := b.perLease(ctx, tickUnits)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, tick := range []struct{ what, list, core string }{
		{"nothing changed", "unchanged", "unchanged"}, {"all listed anew", "changed", "full_list"},
	} {
		listed, err1 := need(list, tick.list, "ns/op")
		decided, err2 := need(core, tick.core, "ns/op")
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		ms := func(ns float64) string { return fmt.Sprintf("%.2f ms", ns/float64(time.Millisecond)) }
		rows = append(rows, row{
			what:     fmt.Sprintf("a tick of %s installations, %s", count(tickUnits), tick.what),
			measured: fmt.Sprintf("%s (list %s, decide %s)", ms(listed+decided), ms(listed), ms(decided)),
			beside:   fmt.Sprintf("an update per lease: %s, %s", ms(float64(other.took)), size(float64(other.bytes))),
			ratio:    fmt.Sprintf("%.2g", (listed+decided)/float64(other.took)),
		})
	}
	return rows, nil
}
