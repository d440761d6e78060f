// Command vulngate decides whether what govulncheck found is ours to mend. It
// reads the output of "govulncheck -format json", of one scan or of several, on
// standard input.
//
// A vulnerability that the program calls fails the gate. The one exception goes
// by module, never by id: one in the Go standard library whose fix this machine's
// Go does not have is printed and passed, since no change here could mend it; it
// fails again on the first machine whose Go has the fix. What is merely required
// or imported, and never called, is counted.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vulngate:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	// The machine's own Go, asked apart from the scan: the scan says which Go it
	// judged, and the two differ when a toolchain line or a build tag misleads it.
	goversion, err := exec.Command("go", "env", "GOVERSION").Output() //nolint:noctx // ends by itself, and so do we
	if err != nil {
		return fmt.Errorf("ask for the version of Go: %w", err)
	}
	r, err := read(in)
	if err != nil {
		return err
	}
	return r.judge(strings.TrimSpace(string(goversion)), out)
}

// report is what a scan said.
type report struct {
	known  map[string]string // by id: a summary, of every entry that the scan considered
	called map[string]finding
	idle   map[string]bool // ids required or imported only
}

// finding is one vulnerability that the program calls.
type finding struct {
	OSV          string  `json:"osv"`
	FixedVersion string  `json:"fixed_version"`
	Trace        []frame `json:"trace"`
}

type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"`
}

// read collects the messages of the scans. A scan without a configuration, or one
// that considered no entry at all, has looked at nothing: the standard library
// alone has dozens.
func read(in io.Reader) (*report, error) {
	r := &report{known: map[string]string{}, called: map[string]finding{}, idle: map[string]bool{}}
	started := false
	for dec := json.NewDecoder(in); ; {
		var m struct {
			Config *struct{} `json:"config"`
			OSV    *struct {
				ID      string `json:"id"`
				Summary string `json:"summary"`
			} `json:"osv"`
			Finding *finding `json:"finding"`
		}
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the scan: %w", err)
		}
		switch {
		case m.Config != nil:
			started = true
		case m.OSV != nil:
			r.known[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) == 0:
			return nil, fmt.Errorf("finding %s names no module", m.Finding.OSV)
		case m.Finding != nil && m.Finding.Trace[0].Function == "":
			r.idle[m.Finding.OSV] = true
		case m.Finding != nil:
			r.called[m.Finding.OSV+" "+m.Finding.Trace[0].Module] = *m.Finding
		}
	}
	if !started || len(r.known) == 0 {
		return nil, errors.New("the scan considered no vulnerability; is the database empty?")
	}
	return r, nil
}

// judge prints every called vulnerability and returns an error when one of them
// can be mended here.
func (r *report) judge(goversion string, out io.Writer) error {
	goversion, _, _ = strings.Cut(goversion, " ") // experiments follow a space
	if !version.IsValid(goversion) {
		return fmt.Errorf("%q is no released version of Go; scan with one", goversion)
	}
	ours := 0
	for _, key := range slices.Sorted(maps.Keys(r.called)) {
		f := r.called[key]
		at := f.Trace[0]
		verdict := "FAIL"
		if at.Module == "stdlib" && (f.FixedVersion == "" || version.Compare(goversion, release(f.FixedVersion)) < 0) {
			verdict = "allowed"
		} else {
			ours++
		}
		fixed := f.FixedVersion
		if fixed == "" {
			fixed = "no release yet"
		}
		if _, err := fmt.Fprintf(out, "%s: %s in %s@%s (%s.%s), fixed in %s: %s\n",
			verdict, f.OSV, at.Module, at.Version, at.Package, at.Function, fixed, r.known[f.OSV]); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "%d called, %d of them ours to mend; %d required or imported and never called (%s)\n",
		len(r.called), ours, len(r.idle), goversion); err != nil {
		return err
	}
	if ours > 0 {
		return errors.New("update what is marked FAIL above")
	}
	return nil
}

// release turns the database's v1.27.0-rc.1 into Go's own go1.27rc1. A spelling
// that is neither is older than every release, so that its finding fails.
func release(semver string) string {
	base, pre, isPre := strings.Cut(strings.TrimPrefix(semver, "v"), "-")
	if !isPre {
		return "go" + base
	}
	return "go" + strings.TrimSuffix(base, ".0") + strings.ReplaceAll(pre, ".", "")
}
