package config

import (
	"path/filepath"
	"reflect"
	"slices"
)

// declaredOnly is a file that declares installations and targets and nothing else.
type declaredOnly struct {
	Installations []Installation `toml:"installation"`
	Targets       []Target       `toml:"target"`
}

// Declaration reads src.Path, or src.Text under that name, as a file of
// [[installation]] and [[target]] tables: any other key is a fault, no other file and
// no variable adds to it. Everything else is as Load has it: the error is Faults with
// all that is wrong. The Config holds the installations, the targets, the uses of
// secrets and the file, beside the defaults.
//
// targets are the names that an installation may have in its targets, beside those of
// the file; nil = they are not known here, and any will do. A via may name an
// installation that the file does not have, and so may a target: whether it is there,
// only the store knows.
func Declaration(src Source, targets []string) (*Config, error) {
	h, err := thisHost(src)
	if err != nil {
		return nil, Faults{{Message: "the working folder is not known: " + err.Error()}}
	}
	data, fault := src.Text, (*Fault)(nil)
	if data == nil {
		data, fault = read(h.abs(src.Path))
	}
	if fault != nil {
		fault.File = src.Path
		return nil, Faults{*fault}
	}
	tree, faults := parse(src.Path, data)
	w := newWalker(src, h)
	w.faults = append(w.faults, faults...)
	w.folder = filepath.Dir(h.abs(src.Path)) // of a text: the working folder
	var only declaredOnly
	w.table(tree, reflect.ValueOf(&only).Elem(), "", false)

	c := Default()
	c.Files, c.Installations, c.Targets, c.Uses = []string{src.Path}, only.Installations, only.Targets, w.uses
	place(c, w.where)
	v := &validator{where: w.where, bad: w.bad, partial: len(faults) > 0}
	v.table(reflect.ValueOf(&only).Elem(), spot{})
	v.declaredTargets(c.Targets, &targets)
	v.declared(c.Installations, targets)
	w.faults = append(w.faults, v.faults...)
	w.faults.sort(c.Files)
	if err := w.faults.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// declaredTargets checks targets that stand alone, and adds their names to those that
// are known.
func (v *validator) declaredTargets(all []Target, known *[]string) {
	names := map[string]string{}
	for i := range all {
		t, s := &all[i], elementSpot("target", all[i].Name, i)
		v.define(names, t.Name, s.key("name"), t.Pos)
		v.target(t, s)
	}
	if *known != nil {
		*known = append(slices.Clip(*known), sortedKeys(names)...)
	}
}

// declared checks the names of installations that stand alone, as names does for
// those of a whole config.
func (v *validator) declared(all []Installation, targets []string) {
	carriers, ids := map[string]*Installation{}, map[string]string{}
	for i := range all {
		v.define(ids, all[i].ID, elementSpot("installation", all[i].ID, i).key("id"), all[i].Pos)
		carriers[all[i].ID] = &all[i]
	}
	for i, inst := range all {
		s := elementSpot("installation", inst.ID, i)
		if targets != nil {
			v.refer(inst.Targets, targets, s.key("targets"))
		}
		if inst.Via != "" {
			v.via(inst, carriers, false, s.key("via"))
		}
	}
}
