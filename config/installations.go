package config

import (
	"path/filepath"
	"reflect"
)

// installationsOnly is a file that declares installations and nothing else.
type installationsOnly struct {
	Installations []Installation `toml:"installation"`
}

// Installations reads src.Path, or src.Text under that name, as a file of
// [[installation]] tables: any other key is a fault, no other file and no variable
// adds to it. Everything else is as Load has it: the error is Faults with all that is
// wrong. The Config holds the installations, the uses of secrets and the file, beside
// the defaults.
//
// targets are the names that an installation may have in its targets; nil = they are
// not known here, and any will do. A via may name an installation that the file does
// not have: whether it is there, only the store knows.
func Installations(src Source, targets []string) (*Config, error) {
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
	var only installationsOnly
	w.table(tree, reflect.ValueOf(&only).Elem(), "", false)

	c := Default()
	c.Files, c.Installations, c.Uses = []string{src.Path}, only.Installations, w.uses
	place(c, w.where)
	v := &validator{where: w.where, bad: w.bad, partial: len(faults) > 0}
	v.table(reflect.ValueOf(&only).Elem(), spot{})
	v.declared(c.Installations, targets)
	w.faults = append(w.faults, v.faults...)
	w.faults.sort(c.Files)
	if err := w.faults.err(); err != nil {
		return nil, err
	}
	return c, nil
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
