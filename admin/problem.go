package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"leasehold/internal/fault"
)

// Problem is an answer that says what went wrong, after RFC 9457. Type names the
// fault's kind; Detail is for people and ends with the next step.
type Problem struct {
	Type   string `json:"type"` // urn:leasehold:fault:<kind>
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Faults Faulty `json:"faults,omitempty"` // of a configuration that is refused
}

const problemType = "urn:leasehold:fault:"

var titles = map[fault.Kind]string{
	fault.Internal:  "A mistake of this program",
	fault.Invalid:   "The request is wrong",
	fault.NotFound:  "There is no such thing",
	fault.Conflict:  "It stands against what is there",
	fault.Denied:    "The caller may not do this",
	fault.Temporary: "Not now",
	fault.Full:      "No space is left for the store",
	fault.ReadOnly:  "The store cannot be written",
	fault.Corrupt:   "The store is damaged",
	fault.Busy:      "The store is held by another process",
	fault.Gone:      "The store was removed or replaced",
	fault.Newer:     "The store is of a newer version",
	fault.Backlog:   "Too much waits for delivery",
}

// statusError is an error whose status its kind does not tell: those of HTTP itself.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// problemOf turns an error into the answer that strangers see. An error without
// a kind is a mistake of ours: its text stays in the log.
func problemOf(err error) Problem {
	kind := fault.Of(err)
	p := Problem{Type: problemType + kind.String(), Title: titles[kind], Status: fault.Status(err), Detail: err.Error()}
	if kind == fault.Internal {
		p.Detail = "the log has the cause; see it with leasehold's own output or its service's journal"
	}
	if f, ok := errors.AsType[Faulty](err); ok {
		p.Faults = slices.Clone(f) // secrets are taken out in place
	}
	if s, ok := errors.AsType[*statusError](err); ok {
		p.Status, p.Title = s.status, http.StatusText(s.status)
	}
	return p
}

// Err is the error that a client returns for the problem, with the kind that it
// names; of a configuration that is refused it is Faulty.
func (p Problem) Err() error {
	if len(p.Faults) > 0 {
		return p.Faults
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	name, known := strings.CutPrefix(p.Type, problemType)
	if !known {
		return fmt.Errorf("the server answered %d: %s", p.Status, text)
	}
	for kind := range titles {
		if kind.String() == name {
			return fault.Wrap(kind, errors.New(text))
		}
	}
	return errors.New(text)
}

// fail answers a request with its error, which is logged when it is ours.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if r.Context().Err() != nil {
		return // nobody waits for it
	}
	if p.Status >= http.StatusInternalServerError && !fault.Is(err, fault.Temporary) {
		a.o.Log.LogAttrs(r.Context(), slogLevel(err), "request failed", requestAttrs(r, err)...)
	}
	writeProblem(w, p, a.o.Redact.String)
}

// writeProblem writes p through clean, which takes secrets out.
func writeProblem(w http.ResponseWriter, p Problem, clean func(string) string) {
	p.Detail = clean(p.Detail)
	for i := range p.Faults {
		f := &p.Faults[i]
		f.Message, f.Hint, f.Text = clean(f.Message), clean(f.Hint), clean(f.Text)
	}
	b, err := json.Marshal(p)
	if err != nil { // strings always marshal
		b = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(b) // a client that went away is not our error
}
