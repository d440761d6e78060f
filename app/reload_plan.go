package app

import (
	"context"
	"errors"
	"fmt"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/internal/fault"
)

// plan is a config that was checked whole, and what it takes to put it in force.
type plan struct {
	config  *config.Config // what the node is to run with
	change  *delivery.Change
	targets []delivery.Target
	asked   bool // by a person
	rows    []admin.Installation
	filed   []admin.TargetRow // targets of the file
	revived []string          // targets that answered 410, to be asked again
	lacks   map[string]string // see lacks
	keys    []string          // that change, beside installations and targets
	restart []string          // that cannot change
}

// plan reads the files and builds what they say. It changes nothing.
func (r *reloader) plan(ctx context.Context, look *config.Look, w wish) (*plan, error) {
	doubts := look.Lost(r.applied)
	if !w.empty {
		doubts = append(doubts, look.Doubts(r.applied)...)
	}
	if len(doubts) > 0 {
		return nil, doubts
	}
	next, err := r.p.load()
	if err != nil {
		return nil, err
	}
	rows, unready, twins := wanted(next, r.types, r.key)
	have, err := r.n.store.Targets(ctx)
	if err != nil {
		return nil, err
	}
	filed := targetRows(next)
	stored := foreseenTargets(r.n.store.Sole(), filed, have)
	var revived []string
	for i := range stored {
		if w.asked && stored[i].Off == admin.OffGone {
			stored[i].Off = ""
			revived = append(revived, stored[i].Name)
		}
	}
	next = withTargets(next, stored, r.p.source(), r.log)
	targets := r.p.withKeys(targetsOf(next, r.n.poster(), r.resolve))
	p := &plan{asked: w.asked, rows: rows, targets: targets, filed: filed, revived: revived, lacks: lacks(next, unready, targets)}
	if err := together(unbuilt(ctx, next, r.types, r.resolve), twins, r.worse(next, p.lacks), misshapen(next, r.resolve)); err != nil {
		return nil, err
	}
	if err := r.p.startable(next, r.resolve); err != nil {
		return nil, err
	}
	p.config, p.keys, p.restart = r.n.config.Load().Follow(next)
	settings := settingsOf(p.config, targets)
	settings.Revive = w.asked
	if p.change, err = r.n.dispatcher.Prepare(settings); err != nil {
		return nil, fault.Wrap(fault.Invalid, err)
	}
	return p, nil
}

// lacks says what each installation and target lacks that cannot work for want of
// something of its own, a secret most often.
func lacks(c *config.Config, unready map[string]error, targets []delivery.Target) map[string]string {
	all := map[string]string{}
	for _, i := range c.Installations {
		if err := unready[i.ID]; err != nil {
			all[labelOf("installation", i.ID)] = errors.Unwrap(err).Error() // without its id
		}
	}
	for _, t := range targets {
		if l, ok := t.Sink.(lacking); ok {
			all[labelOf("target", t.Name)] = l.what
		}
	}
	return all
}

func labelOf(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }

// worse refuses what would stop an installation or a target that works, or add one
// that cannot. A start has no choice but to begin without it; a reload has. What
// could not work before, or is disabled, is no reason to refuse the rest.
func (r *reloader) worse(c *config.Config, lacks map[string]string) error {
	var faults config.Faults
	note := func(label string, pos config.Pos) {
		what, lacking := lacks[label]
		if _, before := r.unready[label]; lacking && !before {
			faults = append(faults, config.Fault{File: pos.File, Line: pos.Line, Col: pos.Col, Key: label, Message: what})
		}
	}
	for _, t := range c.Targets {
		note(labelOf("target", t.Name), t.Pos)
	}
	for _, i := range c.Installations {
		if !i.Enabled {
			continue
		}
		note(labelOf("installation", i.ID), i.Pos)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// carryOut puts a plan in force. The store comes first, since it may refuse; after
// it nothing can. An installation never names a target that is gone already.
func (r *reloader) carryOut(ctx context.Context, p *plan) (done admin.Reloaded, err error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileWithin)
	defer cancel()
	if _, _, _, err := appliedTargets(limited, r.n.store, p.filed, r.log); err != nil {
		return done, err
	}
	for _, name := range p.revived {
		if err := r.n.store.SwitchTarget(limited, name, "", ""); err != nil {
			return done, err
		}
	}
	i := &done.Installations
	if i.Added, i.Changed, i.Removed, err = reconciled(applied(limited, r.n.store, p.rows, r.log)); err != nil {
		return done, err
	}
	if p.asked {
		i.Changed = append(i.Changed, r.reseal(limited)...)
	}
	r.n.router.follow(p.config)
	t := &done.Targets
	t.Added, t.Changed, t.Removed = p.change.Apply()
	r.targets, r.rows = p.targets, nil // the store's are looked at again
	was := r.n.config.Swap(p.config)
	r.p.setLevel(p.config.Log)
	for _, t := range r.n.chores {
		if every := t.every(p.config); every != t.every(was) {
			r.n.tasks.SetEvery(t.name, every)
		}
	}
	r.n.Trigger()
	done.Files, done.Keys, done.Restart = absolute(p.config.Files), p.keys, p.restart
	return done, nil
}

// reseal has installations connect again whose secret is another one now, and returns
// their ids: those that a command made, and in a store that nodes share, to which no
// file is applied any more, those that one named at first. One that cannot be built is
// left as it is.
func (r *reloader) reseal(ctx context.Context) []string {
	return admin.Reseal(ctx, r.n.store, r.types, r.key, func(i admin.Installation) bool {
		_, err := r.types.Decode(i.Type, i.Config)
		return (i.Source == admin.SourceAPI || !r.n.store.Sole()) && err == nil
	}, r.log)
}
