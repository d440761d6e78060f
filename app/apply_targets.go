package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/fault"
)

// targetSteps are what takes the targets of a store to what a file says, if it says
// anything of targets.
type targetSteps struct {
	put, late, remove []targetStep // late: those that post through an installation that is made in between
	unchanged         int
}

// targetStep is one change. One with revision 0 creates.
type targetStep struct {
	name     string
	keys     map[string]any
	revision int64
	owner    string // where the config file sets a row that it owns; "" = it does not
}

// followTargets finds the steps. there are the installations of the store; remote: it is
// another machine's. The error is config.Faults, as that of follow.
func followTargets(file *config.Config, have []admin.TargetView, there []admin.View, prune, remote bool) (targetSteps, error) {
	var l targetSteps
	var faults config.Faults
	if len(file.Targets) == 0 {
		return l, nil
	}
	stored := map[string]admin.TargetView{}
	for _, h := range have {
		stored[h.Name] = h
	}
	for _, t := range file.Targets {
		h := stored[t.Name]
		delete(stored, t.Name)
		want := t.JSON()
		if string(h.Config) == string(want) {
			l.unchanged++
			continue
		}
		fail := func(message, hint string) {
			faults = append(faults, config.Fault{
				File: t.Pos.File, Line: t.Pos.Line, Col: t.Pos.Col, Key: labelOf("target", t.Name), Message: message, Hint: hint,
			})
		}
		stands := slices.ContainsFunc(there, func(v admin.View) bool { return v.ID == t.Installation })
		comes := slices.ContainsFunc(file.Installations, func(i config.Installation) bool { return i.ID == t.Installation })
		switch {
		case h.Declared != "":
			fail("is set in "+h.Declared+", which owns it", "change it there, or take it out of this file")
		case remote && t.Type == "command":
			fail("runs a program with the rights of Leasehold", "apply it on the machine itself")
		case t.Type == "message" && !stands && !comes:
			fail(fmt.Sprintf("posts through %q, which is no installation here or in the store", t.Installation), "add that to the file")
		}
		s := targetStep{name: t.Name, keys: map[string]any{}, revision: h.Revision}
		if err := json.Unmarshal(want, &s.keys); err != nil {
			return l, fmt.Errorf("target %s: %w", t.Name, err)
		}
		if t.Type == "message" && !stands {
			l.late = append(l.late, s)
		} else {
			l.put = append(l.put, s)
		}
	}
	if len(faults) > 0 {
		return l, faults
	}
	for _, h := range have {
		if _, lacking := stored[h.Name]; prune && lacking {
			l.remove = append(l.remove, targetStep{name: h.Name, owner: h.Declared})
		}
	}
	return l, nil
}

// count is how many changes there are.
func (l targetSteps) count() int { return len(l.put) + len(l.late) + len(l.remove) }

// foresee adds the outcome that carrying the steps out would have.
func (l targetSteps) foresee(o *outcome) {
	for _, s := range slices.Concat(l.put, l.late) {
		o.Targets.note(s.name, s.revision)
	}
	for _, s := range l.remove {
		if s.owner != "" {
			o.Targets.Kept = append(o.Targets.Kept, s.name)
			o.Warnings = append(o.Warnings, fmt.Sprintf("target %s is set in %s and stays; remove it there", s.name, s.owner))
			continue
		}
		o.Targets.Removed = append(o.Targets.Removed, s.name)
	}
}

// carryOutPuts makes targets as the file says, one by one.
func (l steps) carryOutPuts(ctx context.Context, a *admin.Client, o *outcome, all []targetStep) error {
	for _, s := range all {
		if _, err := a.PutTarget(ctx, s.name, s.keys, s.revision); err != nil {
			return l.stopped(*o, "target "+s.name, err)
		}
		o.Targets.note(s.name, s.revision)
	}
	return nil
}

// carryOutRemovals takes targets away. One for which something waits, or that an
// installation names, stays, as does one of the config file.
func (l steps) carryOutRemovals(ctx context.Context, a *admin.Client, o *outcome) error {
	for _, s := range l.targets.remove {
		switch _, err := a.RemoveTarget(ctx, s.name, false); {
		case err == nil, fault.Is(err, fault.NotFound): // somebody else was sooner
			o.Targets.Removed = append(o.Targets.Removed, s.name)
		case fault.Is(err, fault.Conflict):
			o.Targets.Kept = append(o.Targets.Kept, s.name)
			o.Warnings = append(o.Warnings, err.Error())
		default:
			return l.stopped(*o, "target "+s.name, err)
		}
	}
	return nil
}

// everyTarget are all targets of the store.
func everyTarget(ctx context.Context, a *admin.Client) ([]admin.TargetView, error) {
	return everyPage(url.Values{}, func(q url.Values) (admin.Page[admin.TargetView], error) { return a.Targets(ctx, q) })
}

// targetsThere are the targets that installations of a file may name, beside the file's
// own: those of the config, and those of the store if there is one. nil: they are not
// known now.
func (p *program) targetsThere(ctx context.Context) []string {
	names := []string{}
	if p.server == "" {
		c, err := p.load()
		if err != nil {
			return nil // of a config that is wrong now: whoever runs with an earlier one knows
		}
		names = append(names, targetNames(c)...)
	}
	err := p.reach(ctx, reading, func(ctx context.Context, a *admin.Client) error {
		all, err := everyTarget(ctx, a)
		for _, t := range all {
			names = append(names, t.Name)
		}
		return err
	})
	if ended, ok := errors.AsType[*exitError](err); err != nil && (!ok || ended.code != fault.ExitNotRunning) {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}
