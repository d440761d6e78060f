package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
)

// steps are what takes a store from what it has to what a file says.
type steps struct {
	put, remove []step
	unchanged   int
	targets     targetSteps
}

// step is one change. One with revision 0 creates.
type step struct {
	id, via  string
	in       admin.Input
	revision int64
	owner    string // where the config file sets a row that it owns; "" = it does not
}

// follow finds the steps. The error is config.Faults: what the file asks for and this
// store cannot have, all at once and before anything is changed.
func follow(file *config.Config, types *channel.Types, have []admin.View, prune bool) (steps, error) {
	var l steps
	var faults config.Faults
	stored, left := map[string]admin.View{}, map[string]string{} // left: the types of who is there afterwards and may carry
	for _, h := range have {
		stored[h.ID] = h
		if (!prune || h.Declared != "") && h.Via == "" {
			left[h.ID] = h.Type
		}
	}
	for _, i := range file.Installations {
		delete(left, i.ID)
		if i.Via == "" {
			left[i.ID] = i.Type
		}
	}
	rows, _, err := wanted(file, types, nil)
	if err != nil {
		return l, err
	}
	for n, i := range file.Installations {
		h, there := stored[i.ID]
		delete(stored, i.ID)
		if there && same(bared(rows[n]), bared(h.Installation)) {
			l.unchanged++
			continue
		}
		fail := func(message, hint string) {
			faults = append(faults, config.Fault{
				File: i.Pos.File, Line: i.Pos.Line, Col: i.Pos.Col, Key: labelOf("installation", i.ID), Message: message, Hint: hint,
			})
		}
		if carrier, ok := left[i.Via]; i.Via != "" && (!ok || carrier != i.Type) {
			fail(fmt.Sprintf("rides via %q, which is no installation of type %s with a connection of its own, here or in the store", i.Via, i.Type), "add that to the file")
		}
		spec, _ := types.Lookup(i.Type) // config.Installations has refused an unknown one
		switch {
		case h.Declared != "":
			fail("is set in "+h.Declared+", which owns it", "change it there, or take it out of this file")
		case spec.FileOnly:
			fail("an installation of type "+i.Type+" runs what its config says with the rights of Leasehold", "define it in the config file")
		}
		l.put = append(l.put, step{id: i.ID, via: i.Via, in: inputOf(i), revision: h.Revision})
	}
	if len(faults) > 0 {
		return l, faults
	}
	if len(file.Installations) == 0 && len(file.Targets) > 0 {
		return l, nil // it says nothing of installations
	}
	if prune && len(file.Installations) == 0 && len(have) > 0 {
		return l, fault.Errorf(fault.Invalid, "%s has no [[installation]], and --prune would remove all %d that are there; if that is meant, use leasehold installations remove", file.Main(), len(have))
	}
	for _, h := range have {
		if _, lacking := stored[h.ID]; prune && lacking {
			l.remove = append(l.remove, step{id: h.ID, owner: h.Declared})
		}
	}
	slices.SortStableFunc(l.put, inOrder)
	return l, nil
}

// inOrder sorts puts as the store takes them: a carrier before its riders, and who is
// disabled before who may get its account.
func inOrder(a, b step) int {
	rank := func(s step) (n int) {
		if s.via != "" {
			n += 2
		}
		if s.in.Enabled == nil || *s.in.Enabled {
			n++
		}
		return n
	}
	return rank(a) - rank(b)
}

// bared is a row without what only its own node and its store say of it.
func bared(i admin.Installation) admin.Installation {
	i.Fingerprint = ""
	return i
}

// begun is an outcome before the first step.
func (l steps) begun() outcome {
	return outcome{followed: nothingYet(l.unchanged), Targets: nothingYet(l.targets.unchanged)}
}

// foreseen is the outcome that carryOut would have.
func (l steps) foreseen() outcome {
	o := l.begun()
	o.DryRun = true
	l.targets.foresee(&o)
	for _, s := range l.put {
		o.note(s.id, s.revision)
	}
	for _, s := range l.remove {
		if s.owner != "" {
			o.keep(s.id, fmt.Sprintf("installation %s is set in %s and stays; remove it there", s.id, s.owner))
			continue
		}
		o.Removed = append(o.Removed, s.id)
	}
	return o
}

func (o *outcome) keep(id, why string) {
	o.Kept = append(o.Kept, id)
	o.Warnings = append(o.Warnings, why)
}

// stopped is the error of a step that failed.
func (l steps) stopped(o outcome, what string, err error) error {
	done := o.done() + o.Targets.done()
	if done == 0 && errors.Is(err, admin.ErrNoAnswer) {
		return err
	}
	// What one step met is told with its exit code and not for what it is: a mistake
	// in a request ends with 2, which says that nothing was done.
	return &exitError{fault.ExitCode(err), fmt.Errorf(
		"%s: %v; apply stopped there, with %d of %d changes done; run it again to go on from what is there now", what, err, done, len(l.put)+len(l.remove)+l.targets.count())} //nolint:errorlint // see above
}

// carryOut makes the changes, one by one, and stops at the first that fails: the
// outcome is what was done until then. Targets are put before the installations that
// name them, and removed behind them. Of installations removals come first: an account
// that moves to another id is free by then. What may not be removed is kept, the
// others are removed, and the error is fault.Conflict.
func (l steps) carryOut(ctx context.Context, a *admin.Client) (outcome, error) {
	o := l.begun()
	if err := l.carryOutPuts(ctx, a, &o, l.targets.put); err != nil {
		return o, err
	}
	for _, s := range l.remove {
		switch err := a.RemoveInstallation(ctx, s.id); {
		case err == nil, fault.Is(err, fault.NotFound): // somebody else was sooner
			o.Removed = append(o.Removed, s.id)
		case fault.Is(err, fault.Conflict):
			o.keep(s.id, err.Error())
		default:
			return o, l.stopped(o, "installation "+s.id, err)
		}
	}
	for _, s := range l.put {
		v, err := a.PutInstallation(ctx, s.id, s.in, s.revision)
		if err != nil {
			return o, l.stopped(o, "installation "+s.id, err)
		}
		if v.Warning != "" {
			o.Warnings = append(o.Warnings, v.Warning)
		}
		o.note(s.id, s.revision)
	}
	if err := l.carryOutPuts(ctx, a, &o, l.targets.late); err != nil {
		return o, err
	}
	if err := l.carryOutRemovals(ctx, a, &o); err != nil {
		return o, err
	}
	return o, o.keeps()
}

// keeps is the error of what was kept.
func (o *outcome) keeps() error {
	if n := len(o.Kept); n > 0 {
		return fault.Errorf(fault.Conflict, "%d of the installations that the file lacks are the config file's and stay; remove them there, or leave --prune out", n)
	}
	if n := len(o.Targets.Kept); n > 0 {
		return fault.Errorf(fault.Conflict, "%d of the targets that the file lacks stay; do what is said of each, or leave --prune out", n)
	}
	return nil
}
