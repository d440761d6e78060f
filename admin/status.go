package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"leasehold/internal/fault"
)

// Overview is the truth about a box on one page.
type Overview struct {
	Mode    Mode      `json:"mode"`
	Well    bool      `json:"well"` // running, and nothing below needs a person
	Trouble []Trouble `json:"trouble,omitempty"`
	Version Version   `json:"version"`
	Node    *NodeInfo `json:"node,omitempty"`
	Holder  string    `json:"holder,omitempty"` // who holds the store, when it is not this process
	// Config is what the running program knows of its files; none = it reads none.
	Config *Configuration `json:"config,omitempty"`

	Installations []View   `json:"installations"`
	Targets       []Target `json:"targets,omitempty"`
	Tasks         []Task   `json:"tasks,omitempty"`
	Totals        Totals   `json:"totals"`
}

// Trouble is one thing that is not well, and what to do about it.
type Trouble struct {
	What     string `json:"what"` // installation acme, target app, task sweeper, store
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	NextStep string `json:"next_step,omitempty"`
}

// readyWithin bounds the check behind /readyz: an orchestrator's probe waits one second.
const readyWithin = 900 * time.Millisecond

func (a *API) status(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	o, err := a.Overview(r.Context())
	if err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, o)
}

// Overview is what GET /v1/status answers: it reads, and writes nothing.
func (a *API) Overview(ctx context.Context) (Overview, error) {
	o := Overview{Mode: a.o.Mode, Version: a.o.Version, Holder: a.o.Holder}
	var err error
	if o.Installations, err = a.views(ctx); err != nil {
		return o, err
	}
	if o.Totals, err = a.o.Store.Totals(ctx); err != nil {
		return o, fmt.Errorf("count: %w", err)
	}
	// The stored states of a holder that is gone are history: count what is shown.
	o.Totals.Links = map[string]int{}
	for _, v := range o.Installations {
		o.Totals.Links[v.Status.State]++
	}
	if o.Tasks, err = a.tasks(ctx); err != nil {
		return o, err
	}
	if a.o.Process != nil {
		info := a.o.Process.Info()
		o.Node, o.Targets = &info, a.o.Process.Targets()
	}
	if a.o.Reloader != nil {
		c := a.o.Reloader.Configuration()
		o.Config = &c
	}
	o.Trouble = a.trouble(ctx, o)
	o.Well = o.Mode == Running && len(o.Trouble) == 0
	return o, nil
}

func (a *API) trouble(ctx context.Context, o Overview) (all []Trouble) {
	if err := a.unready(ctx); err != nil && o.Mode == Running {
		all = append(all, Trouble{What: "node", State: "not_ready", Reason: err.Error(), NextStep: StoreStep(err)})
	}
	if a.o.Process != nil {
		all = append(all, a.o.Process.Troubles()...)
	}
	all = append(all, configTrouble(o.Config)...)
	for _, v := range o.Installations {
		if o.Mode == Running && !well(v.Status) {
			all = append(all, Trouble{What: "installation " + v.ID, State: v.Status.State, Reason: v.Status.Reason, NextStep: v.NextStep})
		}
	}
	for _, t := range o.Targets {
		if t.State != "ok" {
			all = append(all, Trouble{What: "target " + t.Name, State: t.State, Reason: t.Reason, NextStep: t.NextStep})
		}
	}
	for _, t := range o.Tasks {
		if t.ConsecutiveFailures > 0 {
			all = append(all, Trouble{What: "task " + t.Name, State: "failing", Reason: t.LastError, NextStep: "correct the cause, then leasehold tasks run " + t.Name})
		}
	}
	if n := o.Totals.Deliveries["dead"]; n > 0 {
		all = append(all, Trouble{What: "deliveries", State: "dead", Reason: fmt.Sprintf("%d given up", n), NextStep: "leasehold deliveries list --state dead, then replay or drop them"})
	}
	return all
}

func (a *API) version(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, a.o.Version)
}

// health answers as long as the process turns: whoever asks restarts it otherwise.
func (a *API) health(w http.ResponseWriter, _ *http.Request) error {
	return a.answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether this node can work. One customer's revoked token does not
// take it out of service.
func (a *API) ready(w http.ResponseWriter, r *http.Request) error {
	if err := a.unready(r.Context()); err != nil {
		return &statusError{http.StatusServiceUnavailable, fault.Errorf(fault.Temporary, "not ready: %w", err)}
	}
	return a.answer(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (a *API) unready(ctx context.Context) error {
	if a.o.Process == nil {
		if a.o.Holder != "" {
			return fmt.Errorf("%s holds the store", a.o.Holder)
		}
		return errNotRunning
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return a.o.Process.Ready(ctx)
}
