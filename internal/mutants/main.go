// Command mutants breaks the program on purpose, one line at a time, and reports
// which test notices.
//
// A test that passes says little until it is known to fail when what it promises
// is taken away. Each mutant takes one promise away: a fence that comes late, a
// statement that does not compare the epoch, an acknowledgement before the commit.
// Its tests are run over the changed source, which the compiler is handed beside
// the real one, so nothing in the work tree is touched. A mutant that survives,
// does not compile, or whose place in the source has changed ends the command with 1.
//
//	go run ./internal/mutants                  all of them
//	go run ./internal/mutants -only epoch      those whose name holds a word
//	go run ./internal/mutants -write FILE      and write the report between its marks
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, notes io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(notes)
	only := flags.String("only", "", "run those whose name holds this")
	write := flags.String("write", "", "write the report into this file")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var report strings.Builder
	survived := 0
	for _, m := range mutants {
		if !strings.Contains(m.name, *only) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		caught, err := m.try(ctx)
		if err != nil {
			survived++
			caught = "**" + err.Error() + "**"
		}
		line := fmt.Sprintf("| %s | `%s` | %s |\n", m.name, m.file, caught)
		_, _ = fmt.Fprintf(notes, "%5.1f s  %s", time.Since(began).Seconds(), line)
		report.WriteString(line)
	}
	if ctx.Err() != nil {
		return 1
	}
	text := "| what is taken away | where | noticed by |\n| --- | --- | --- |\n" + report.String()
	_, _ = io.WriteString(out, text)
	if *write != "" {
		if err := between(*write, text); err != nil {
			_, _ = fmt.Fprintln(notes, err)
			return 1
		}
	}
	if survived > 0 {
		return 1
	}
	return 0
}

// try returns the name of the test that noticed the mutant.
func (m mutant) try(ctx context.Context) (string, error) {
	overlay, clean, err := m.overlay()
	if err != nil {
		return "", err
	}
	defer clean()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	args := append([]string{"test", "-overlay", overlay, "-count=1", "-failfast", "-timeout", hung.String(), "-run", m.run}, m.pkg)
	args = append(args, m.args...)
	c := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", errors.New("survived")
	case !errors.As(err, &exit) || unbuilt.Match(said.Bytes()):
		return "", fmt.Errorf("does not build: %s", firstLine(said.String()))
	}
	if found := failed.FindAllStringSubmatch(said.String(), -1); found != nil {
		return "`" + found[len(found)-1][1] + "`", nil
	}
	if found := waited.FindSubmatch(said.Bytes()); found != nil {
		return fmt.Sprintf("`%s`, which waits for ever", found[1]), nil
	}
	if bytes.Contains(said.Bytes(), []byte("\npanic: ")) || bytes.HasPrefix(said.Bytes(), []byte("panic: ")) {
		return "a panic under `" + m.run + "`", nil
	}
	return "", fmt.Errorf("no test says why: %s", firstLine(said.String()))
}

// hung is when a test that waits for what a mutant took away is taken to have
// noticed; within bounds the compiler, too.
const hung, within = 2 * time.Minute, 5 * time.Minute

// unbuilt is what go test says of a source that does not compile.
var unbuilt = regexp.MustCompile(`\[(build|setup) failed\]`)

// failed is the name of a test that failed; the last of them is the innermost.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// waited is the name of a test that was at work when the time was up.
var waited = regexp.MustCompile(`running tests:\n\s*(\S+)`)

// overlay writes the changed file, and the file that tells the compiler of it.
func (m mutant) overlay() (file string, clean func(), err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", nil, err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", nil, fmt.Errorf("its place is in the source %d times", n)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	changed := filepath.Join(dir, filepath.Base(m.file))
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", clean, err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", clean, err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, clean, errors.Join(
		os.WriteFile(changed, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600),
		os.WriteFile(file, list, 0o600))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// between replaces what stands between the report's marks in a file.
func between(file, text string) error {
	const begin, end = "<!-- mutants -->\n", "<!-- end of mutants -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no %q and %q", file, begin, end)
	}
	return os.WriteFile(file, []byte(head+begin+text+end+tail), 0o600)
}
