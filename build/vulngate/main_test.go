package main

import (
	"strings"
	"testing"
)

const head = `{"config":{"protocol_version":"v1.0.0"}}{"osv":{"id":"GO-1","summary":"a hole"}}`

// found is one finding that the program calls.
func found(module, fixed string) string {
	return `{"finding":{"osv":"GO-1","fixed_version":"` + fixed + `","trace":[{"module":"` + module + `","version":"v1.26.8","package":"p","function":"F"}]}}`
}

func TestGate(t *testing.T) {
	for _, tt := range []struct {
		name, scan, goversion string
		want                  string // in the error; empty: passes
	}{
		{"nothing found passes", head, "go1.26.8", ""},
		{"a standard library fixed in a newer Go passes", head + found("stdlib", "v1.26.9"), "go1.26.8", ""},
		{"a standard library fixed in a newer release candidate passes", head + found("stdlib", "v1.27.0-rc.2"), "go1.27rc1", ""},
		{"a standard library without a fix passes", head + found("stdlib", ""), "go1.26.8", ""},
		{"a Go with an experiment is read", head + found("stdlib", "v1.26.9"), "go1.26.8 X:jsonv2", ""},
		{"what is never called passes", head + `{"finding":{"osv":"GO-1","trace":[{"module":"example.com/m","package":"p"}]}}`, "go1.26.8", ""},
		{"a standard library fixed in this Go fails", head + found("stdlib", "v1.26.8"), "go1.26.8", "marked FAIL"},
		{"a standard library fixed in an older Go fails", head + found("stdlib", "v1.26.9"), "go1.27.1", "marked FAIL"},
		{"a standard library fixed in the candidate of this release fails", head + found("stdlib", "v1.27.0-rc.2"), "go1.27.0", "marked FAIL"},
		{"a version that nobody knows fails", head + found("stdlib", "soon"), "go1.26.8", "marked FAIL"},
		{"a module fails whatever its fix", head + found("example.com/m", "v9.0.0"), "go1.26.8", "marked FAIL"},
		{"a module without a fix fails", head + found("example.com/m", ""), "go1.26.8", "marked FAIL"},
		{"one of ours is not hidden by the library's", head + found("stdlib", "v1.26.9") + found("example.com/m", ""), "go1.26.8", "marked FAIL"},
		{"a Go of no release fails", head, "devel", "no released version"},
		{"an empty database fails", `{"config":{}}`, "go1.26.8", "considered no vulnerability"},
		{"no output fails", "", "go1.26.8", "considered no vulnerability"},
		{"an output cut short fails", head + `{"finding":{"osv":`, "go1.26.8", "read the scan"},
		{"a finding without a trace fails", head + `{"finding":{"osv":"GO-1"}}`, "go1.26.8", "names no module"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			r, err := read(strings.NewReader(tt.scan))
			if err == nil {
				err = r.judge(tt.goversion, &out)
			}
			if tt.want == "" && err != nil {
				t.Errorf("got %v, want a pass\n%s", err, &out)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want an error with %q\n%s", err, tt.want, &out)
			}
			if strings.Contains(tt.scan, `"function"`) && err == nil && !strings.Contains(out.String(), "allowed: GO-1 in stdlib@v1.26.8 (p.F)") {
				t.Errorf("got output %q, want the finding that was allowed", &out)
			}
		})
	}
}
