package config

import (
	"encoding/json"
	"reflect"
)

// installation walks [installation.config] against its channel type's own struct
// and keeps it as JSON. n is the [[installation]].
func (w *walker) installation(n *node, inst *Installation, path string) {
	inst.Config = json.RawMessage("{}")
	c := n.get("config")
	if c == nil {
		c = &node{kind: tableKind, pos: n.pos, parent: n, name: "config"}
	}
	sub := dot(path, "config")
	if c.kind != tableKind {
		w.wrong(c, sub, "a table", "")
		return
	}
	before := len(w.faults)
	if w.src.Types == nil {
		w.free(c, sub)
	} else if t, ok := w.channelType(n, inst, path); ok {
		w.channel, w.rider = true, inst.Via != ""
		w.table(c, reflect.New(t).Elem(), sub, false)
		w.channel, w.rider = false, false
	}
	if len(w.faults) > before {
		return
	}
	raw, err := c.rawJSON()
	if err != nil {
		w.fail(c, sub, "cannot be written as JSON", "")
		return
	}
	inst.Config = raw
}

// channelType finds the config struct of the installation's type. A type that is
// missing or no string is reported elsewhere.
func (w *walker) channelType(n *node, inst *Installation, path string) (reflect.Type, bool) {
	if inst.Type == "" {
		return nil, false
	}
	t, ok := w.src.Types(inst.Type)
	if !ok {
		w.fail(n.get("type"), dot(path, "type"), "unknown channel type "+quote(inst.Type), either(inst.Type, w.src.TypeNames))
		return nil, false
	}
	if t == nil {
		return reflect.TypeFor[struct{}](), true
	}
	return deref(t), true
}
