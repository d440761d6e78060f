// Command bench measures what Leasehold promises about its cost, in one run, and
// sets each number beside something that it can be compared with on the same
// machine at the same time: what a machine does in a second says little, a ratio
// says more.
//
// It builds the binary and drives it as it ships, as a process of its own, against
// a fake platform in a second process and a receiver of webhooks in this one. What
// no process shows from outside it asks of the Go benchmarks of the packages. It
// ends with 1 when something did not work; a target that is missed is printed as
// MISS and is no error, because a busy machine misses some.
//
// It reads the counters of processes from /proc, and so runs on Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// bench is one run: what the measurements share.
type bench struct {
	binary string        // leasehold, as it ships
	dir    string        // removed at the end
	rest   time.Duration // how long rest is watched
	count  int           // repetitions of what is repeated
	notes  io.Writer     // what is being done; the table goes elsewhere
}

// measurement fills rows of the table. Its error is a failure of the program, or
// of the measurement; never a missed target.
type measurement struct {
	name string
	rows func(context.Context, *bench) ([]row, error)
}

func measurements() []measurement {
	return []measurement{
		{"start", startRows},
		{"rest", restRows},
		{"memory", memoryRows},
		{"accept", acceptRows},
		{"drain", drainRows},
		{"through", throughRows},
		{"latency", latencyRows},
		{"tick", tickRows},
		{"postgres rest", postgresRows},
		{"mqtt rest", mqttRestRows},
		{"mqtt through", mqttThroughRows},
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	b := &bench{notes: stderr}
	flags.DurationVar(&b.rest, "rest", 120*time.Second, "how long the program is watched at rest; shorter for trying")
	flags.IntVar(&b.count, "count", 11, "how often what is repeated is measured; the median counts")
	flags.StringVar(&b.binary, "binary", "", "the program to measure; built from this module when empty")
	only := flags.String("only", "", "which measurements, by comma: "+strings.Join(names(), ","))
	dir := flags.String("dir", os.TempDir(), "where the temporary folder goes; its file system is measured too, so no memory disk")
	fake := flags.Bool("platform", false, "be the fake platform of a measurement; bench starts itself so")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *fake {
		return exitCode(stderr, servePlatform(ctx, stdin, stdout))
	}
	chosen, err := choose(*only)
	if err != nil {
		return exitCode(stderr, err)
	}
	return exitCode(stderr, b.run(ctx, chosen, *dir, stdout))
}

func exitCode(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(stderr, "bench:", err)
	return 1
}

func names() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

// choose picks measurements by name, all of them without one.
func choose(only string) ([]measurement, error) {
	all := measurements()
	if only == "" {
		return all, nil
	}
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no measurement %q; want some of %s", name, strings.Join(names(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(m measurement) bool { return !slices.Contains(wanted, m.name) }), nil
}

// run takes every measurement, prints the table, and returns what did not work.
func (b *bench) run(ctx context.Context, chosen []measurement, parent string, out io.Writer) (err error) {
	if b.dir, err = os.MkdirTemp(parent, "bench-"); err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	before := load()
	var rows []row
	var failures []error
	for _, m := range chosen {
		began := time.Now()
		got, err := m.rows(ctx, b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", m.name, err))
			got = append(got, row{what: m.name, measured: "did not work", verdict: failed})
		}
		rows = append(rows, got...)
		b.note("%s: %.0f s", m.name, time.Since(began).Seconds())
	}
	head := fmt.Sprintf("%s %s/%s, %d CPUs, load %s before and %s after", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), before, load())
	if err := printTable(out, head, rows); err != nil {
		return err
	}
	return errors.Join(failures...)
}

// build makes the binary as it ships, unless there is one.
func (b *bench) build(ctx context.Context) error {
	if b.binary != "" {
		return nil
	}
	b.binary = filepath.Join(b.dir, "leasehold")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.binary, "leasehold")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build leasehold: %w\n%s", err, out)
	}
	return nil
}

// note says what is being done, for who waits.
func (b *bench) note(format string, args ...any) {
	_, _ = fmt.Fprintf(b.notes, "# "+format+"\n", args...)
}

// load is the machine's average of the last minute: above the number of CPUs
// others take part in what is measured.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
