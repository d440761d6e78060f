package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"leasehold/internal/fault"
)

// Configuration is what the running program knows of its files.
type Configuration struct {
	Files   []string  `json:"files"`             // those that it read, absolute; none = there is none
	Applied time.Time `json:"applied,omitzero"`  // when their content took effect last
	Faults  []Fault   `json:"faults,omitempty"`  // why their present content is not applied; what ran before runs on
	Failed  time.Time `json:"failed,omitzero"`   // since when
	Restart []string  `json:"restart,omitempty"` // keys whose change waits for a restart
}

// Changes are the names that a reload added, changed and removed.
type Changes struct {
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// None reports whether nothing changed.
func (c Changes) None() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// Reloaded is what a reload changed.
type Reloaded struct {
	Files         []string `json:"files"`
	Installations Changes  `json:"installations"`
	Targets       Changes  `json:"targets"`
	Keys          []string `json:"keys,omitempty"`    // other keys, whose new value holds from now on
	Restart       []string `json:"restart,omitempty"` // keys whose change waits for a restart
}

// Fault is one thing that is wrong with the configuration.
type Fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Text    string `json:"text"` // all of that in a line
}

// Faulty is the error of a configuration that is refused, with all that is wrong
// with it. It is fault.Invalid.
type Faulty []Fault //nolint:errname // a list first, an error second

// Error returns one line for each fault.
func (f Faulty) Error() string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = x.Text
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives it its kind.
func (f Faulty) Unwrap() error {
	return fault.Wrap(fault.Invalid, errors.New("the config is not valid"))
}

// Reloader is a running program's way to read its configuration again.
type Reloader interface {
	// Configuration says how it stands, from memory.
	Configuration() Configuration
	// Reload reads the files now and returns when they are applied, all of them or
	// nothing: then the error is Faulty, or what kept the store from taking them. A
	// file that has become empty is Faulty too, unless allowEmpty.
	Reload(ctx context.Context, allowEmpty bool) (Reloaded, error)
}

// reload applies the files as they are now. It is for the local socket alone: what
// the files say, exec installations among it, only their owner may put in force.
func (a *API) reload(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "allow_empty")
	allowEmpty := q.oneOf("allow_empty", "true", "false") == "true"
	if err := q.err(); err != nil {
		return err
	}
	if a.o.Reloader == nil {
		return fault.Wrap(fault.Temporary, errNotRunning)
	}
	done, err := a.o.Reloader.Reload(r.Context(), allowEmpty)
	if err != nil {
		return err //nolint:wrapcheck // it begins with the file and the line
	}
	return a.answer(w, http.StatusOK, done)
}

// configTrouble is what is not well about the files; nil: nothing.
func configTrouble(c *Configuration) []Trouble {
	if c == nil || len(c.Faults) == 0 {
		return nil
	}
	reason := c.Faults[0].Text
	if n := len(c.Faults) - 1; n > 0 {
		reason += "; and more"
	}
	return []Trouble{{What: "config", State: "not_applied", Reason: reason, NextStep: "correct the file, which is then applied by itself; leasehold check names every fault. What ran before runs on"}}
}
