package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"leasehold/delivery"
	"leasehold/internal/fault"
)

// LiveTargets are the targets of a running program.
type LiveTargets interface {
	// FollowTargets puts in force what the store has of targets, before it returns.
	FollowTargets(ctx context.Context) error
	// Test makes one attempt at a target with a test event, which is stored nowhere.
	// fault.NotFound, fault.Invalid: it cannot be called.
	Test(ctx context.Context, name string) (delivery.Tested, error)

	Pull(ctx context.Context, name string, most int) ([]delivery.Leased, error)
	Stream(name string, o delivery.StreamOptions) (*delivery.Stream, error)
	Acknowledge(name string, leases []string) (over []string, err error)
	GiveBack(name string, leases []string, reason string, after time.Duration) (over []string, err error)
	Release(name string, all []delivery.Leased)
}

// TargetChecker reads the config of a target: the same in the one form in which it is
// stored, and the target's type. The error is fault.Invalid with all that is wrong.
type TargetChecker func(name string, config json.RawMessage) (canonical json.RawMessage, kind string, err error)

// TargetView is a target as an answer shows it.
type TargetView struct {
	TargetRow
	// Declared is where the config file sets it, FILE:LINE; "" for source api.
	Declared string `json:"declared,omitempty"`
	// Status is how it does on the node that answers; nil: nothing runs there.
	Status *Target `json:"status,omitempty"`
}

// Type is the target's type, as its config names it.
func (t TargetRow) Type() string {
	var kind struct{ Type string }
	_ = json.Unmarshal(t.Config, &kind) // it was checked before it was stored
	return kind.Type
}

func (a *API) targetView(row TargetRow) TargetView {
	v := TargetView{TargetRow: row}
	if a.fileOwnsTarget(row) {
		v.Declared = a.o.DeclaredTarget(row.Name)
	}
	if a.o.Process != nil {
		for _, t := range a.o.Process.Targets() {
			if t.Name == row.Name {
				v.Status = &t
			}
		}
	}
	return v
}

func (a *API) listTargets(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "type", "after", "limit")
	kind, after, limit := q.text("type"), q.text("after"), q.limit()
	if err := q.err(); err != nil {
		return err
	}
	rows, err := a.o.Store.Targets(r.Context())
	if err != nil {
		return fmt.Errorf("list targets: %w", err)
	}
	page := Page[TargetView]{Items: []TargetView{}}
	for _, row := range rows {
		if row.Name <= after || kind != "" && row.Type() != kind {
			continue
		}
		if len(page.Items) == limit {
			page.Next = page.Items[limit-1].Name
			break
		}
		page.Items = append(page.Items, a.targetView(row))
	}
	return a.answer(w, http.StatusOK, page)
}

func (a *API) showTarget(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	return a.answerTarget(w, r, http.StatusOK)
}

// answerTarget answers with the row as it now is; its ETag is what If-Match wants.
func (a *API) answerTarget(w http.ResponseWriter, r *http.Request, status int) error {
	row, err := a.o.Store.Target(r.Context(), r.PathValue("name"))
	if err != nil {
		return fmt.Errorf("show target: %w", err)
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(row.Revision, 10)))
	return a.answer(w, status, a.targetView(row))
}

// putTarget creates a target, or with If-Match replaces the one of that revision. The
// body has the keys of a [[target]], without its name.
func (a *API) putTarget(w http.ResponseWriter, r *http.Request) error {
	revision, err := ifMatch(r)
	if err != nil {
		return err
	}
	var in map[string]any
	if err := read(w, r, &in); err != nil {
		return err
	}
	return a.storeTarget(w, r, in, revision)
}

// patchTarget changes some keys of the target of a revision, after RFC 7396: null
// takes one away.
func (a *API) patchTarget(w http.ResponseWriter, r *http.Request) error {
	revision, err := ifMatch(r)
	if err != nil {
		return err
	}
	var in map[string]any
	if err := read(w, r, &in); err != nil {
		return err
	}
	row, err := a.o.Store.Target(r.Context(), r.PathValue("name"))
	if err != nil {
		return fmt.Errorf("change target: %w", err)
	}
	if revision == 0 {
		return fault.Errorf(fault.Invalid, "If-Match is missing: a change is made to one revision, now \"%d\"", row.Revision)
	}
	whole := map[string]any{}
	if err := json.Unmarshal(row.Config, &whole); err != nil {
		return fmt.Errorf("config of target %s: %w", row.Name, err)
	}
	return a.storeTarget(w, r, merge(whole, in), revision)
}

// merge is an RFC 7396 merge of two objects.
func merge(into, patch map[string]any) map[string]any {
	into = maps.Clone(into)
	for key, v := range patch {
		inner, table := v.(map[string]any)
		old, was := into[key].(map[string]any)
		switch {
		case v == nil:
			delete(into, key)
		case table && was:
			into[key] = merge(old, inner)
		case table:
			into[key] = merge(map[string]any{}, inner)
		default:
			into[key] = v
		}
	}
	return into
}

func (a *API) storeTarget(w http.ResponseWriter, r *http.Request, keys map[string]any, revision int64) error {
	name := r.PathValue("name")
	raw, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("write target: %w", err)
	}
	canonical, kind, err := a.o.CheckTarget(name, raw)
	if err != nil {
		return err
	}
	if err := a.mayRun(r, name, kind); err != nil {
		return err
	}
	looked := canonical // it has no name twice, and an order of its own
	if err := mayRefer(r, !isLocal(r), "target "+name, &looked); err != nil {
		return err
	}
	if err := a.canSend(r.Context(), name, canonical); err != nil {
		return err
	}
	row, err := a.o.Store.Target(r.Context(), name)
	switch {
	case fault.Is(err, fault.NotFound):
	case err != nil:
		return fmt.Errorf("look for target: %w", err)
	case a.fileOwnsTarget(row):
		return a.ownedTarget(row)
	case revision == 0:
		return fault.Errorf(fault.Conflict, "target %s exists at revision %d; change it with leasehold targets set, or replace it with If-Match: \"%d\"", name, row.Revision, row.Revision)
	case row.Type() == "command":
		if err := a.mayRun(r, name, row.Type()); err != nil {
			return err
		}
	}
	if _, err := a.o.Store.PutTarget(r.Context(), TargetRow{Name: name, Config: canonical, Source: SourceAPI}, revision); err != nil {
		return fmt.Errorf("put target: %w", err)
	}
	if err := a.followTargets(r.Context()); err != nil {
		return err
	}
	status := http.StatusOK
	if revision == 0 {
		status = http.StatusCreated
	}
	return a.answerTarget(w, r, status)
}

// mayRun refuses a target that runs a program to whoever is not the program's own user
// on this machine: it would have the rights of Leasehold.
func (a *API) mayRun(r *http.Request, name, kind string) error {
	if kind != "command" || isLocal(r) {
		return nil
	}
	return fault.Errorf(fault.Denied, "target %s runs a program with the rights of Leasehold; define it in the config file, or over the local socket", name)
}

// canSend refuses a target of type message whose installation cannot send.
func (a *API) canSend(ctx context.Context, name string, config json.RawMessage) error {
	var t struct{ Type, Installation, Thread string }
	if err := json.Unmarshal(config, &t); err != nil || t.Type != "message" {
		return err
	}
	i, err := a.o.Store.Installation(ctx, t.Installation)
	if fault.Is(err, fault.NotFound) {
		return fault.Errorf(fault.Invalid, "target %s: installation: there is no installation %s; see leasehold installations list", name, t.Installation)
	}
	if err != nil {
		return fmt.Errorf("look for the installation: %w", err)
	}
	switch spec, _ := a.o.Types.Lookup(i.Type); {
	case !spec.Can.Send:
		return fault.Errorf(fault.Invalid, "target %s: installation: %s is of type %s, which cannot send; see leasehold types list", name, i.ID, i.Type)
	case t.Thread != "" && !spec.Can.Threads:
		return fault.Errorf(fault.Invalid, "target %s: thread: %s is of type %s, which knows no threads; see leasehold types list", name, i.ID, i.Type)
	}
	return nil
}

// fileOwnsTarget reports whether a start makes the row what the file says.
func (a *API) fileOwnsTarget(row TargetRow) bool { return row.Source == SourceFile && !a.o.Shared }

func (a *API) ownedTarget(row TargetRow) error {
	where := a.o.DeclaredTarget(row.Name)
	if where == "" {
		where = "the config file"
	}
	return fault.Errorf(fault.Conflict, "target %s is set in %s; change it there", row.Name, where)
}

// removeTarget deletes a target. What waits for it is a reason against that, and so is
// an installation that names it, unless it is forced.
func (a *API) removeTarget(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	q := queryOf(r, "force")
	force := q.oneOf("force", "true", "false") == "true"
	if err := q.err(); err != nil {
		return err
	}
	revision, err := ifMatch(r)
	if err != nil {
		return err
	}
	row, err := a.o.Store.Target(r.Context(), name)
	switch {
	case err != nil:
		return fmt.Errorf("remove target: %w", err)
	case a.fileOwnsTarget(row):
		return a.ownedTarget(row)
	case revision == 0:
		revision = row.Revision
	}
	if !force {
		if err := a.unnamed(r.Context(), name); err != nil {
			return err
		}
	}
	dead, err := a.o.Store.RemoveTarget(r.Context(), name, revision, force)
	if err != nil {
		return err
	}
	if err := a.followTargets(r.Context()); err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, RemovedTarget{Removed: name, Dead: dead})
}

// RemovedTarget is what became of a target and what waited for it.
type RemovedTarget struct {
	Removed string `json:"removed"`
	Dead    int    `json:"dead"` // deliveries that waited, now dead letters
}

// unnamed refuses to remove a target that installations name: what they hear from then
// on would wait for nobody.
func (a *API) unnamed(ctx context.Context, name string) error {
	all, err := a.o.Store.Installations(ctx)
	if err != nil {
		return fmt.Errorf("look who names the target: %w", err)
	}
	var named []string
	for _, i := range all {
		for _, t := range i.Targets {
			if t == name {
				named = append(named, i.ID)
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	return fault.Errorf(fault.Conflict, "installations name target %s: %s; change them first, or remove it with --force", name, strings.Join(named, ", "))
}

func (a *API) enableTarget(w http.ResponseWriter, r *http.Request) error {
	return a.switchTarget(w, r, "", "")
}

func (a *API) disableTarget(w http.ResponseWriter, r *http.Request) error {
	return a.switchTarget(w, r, OffAsked, "switched off by hand")
}

// switchTarget is for the file's targets, too: whether one is on is not the file's to
// say.
func (a *API) switchTarget(w http.ResponseWriter, r *http.Request, off, reason string) error {
	if err := a.o.Store.SwitchTarget(r.Context(), r.PathValue("name"), off, reason); err != nil {
		return fmt.Errorf("switch target: %w", err)
	}
	if err := a.followTargets(r.Context()); err != nil {
		return err
	}
	return a.answerTarget(w, r, http.StatusOK)
}

// followTargets has a running program take up what the store has now.
func (a *API) followTargets(ctx context.Context) error {
	if a.o.Live == nil {
		return nil
	}
	if err := a.o.Live.FollowTargets(ctx); err != nil {
		return fmt.Errorf("it is stored, and this node could not take it up yet: %w", err)
	}
	return nil
}

// TargetTest is what became of a test event.
type TargetTest struct {
	Target    string  `json:"target"`
	WebhookID string  `json:"webhook_id"`
	Taken     bool    `json:"taken"`
	Reason    string  `json:"reason,omitempty"` // why it was not taken
	NextStep  string  `json:"next_step,omitempty"`
	TookMS    float64 `json:"took_ms"`
}

func (a *API) testTarget(w http.ResponseWriter, r *http.Request) error {
	if a.o.Live == nil {
		return fault.Wrap(fault.Conflict, errNotRunning)
	}
	name := r.PathValue("name")
	t, err := a.o.Live.Test(r.Context(), name)
	if err != nil {
		return fmt.Errorf("test target: %w", err)
	}
	return a.answer(w, http.StatusOK, TargetTest{
		Target: name, WebhookID: t.ID, Taken: t.Outcome == delivery.Taken, Reason: t.Reason, NextStep: t.NextStep,
		TookMS: float64(t.Took.Microseconds()) / 1000,
	})
}
