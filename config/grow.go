package config

import (
	"bytes"

	"github.com/pelletier/go-toml/v2/unstable"
)

// How a tree grows: TOML's rules of what may be added to what.

// header finds or makes the table of [a.b.c]. nil: there is no such table, and
// what follows belongs nowhere.
func (p *builder) header(keys []part) *node {
	t := p.parents(keys)
	if t == nil {
		return nil
	}
	k := keys[len(keys)-1]
	switch v := t.get(k.name); {
	case v == nil:
		return p.table(t, k, headed)
	case v.kind == tableKind && v.made == implied:
		v.made, v.pos = headed, p.at(k.off)
		return v
	case v.kind == tableKind && v.made != inlined:
		p.twice(t, k, v)
		return v // its keys are looked at all the same
	default:
		p.twice(t, k, v)
		return nil
	}
}

// element makes the next table of [[a.b.c]].
func (p *builder) element(keys []part) *node {
	t := p.parents(keys)
	if t == nil {
		return nil
	}
	k := keys[len(keys)-1]
	list := t.get(k.name)
	if list == nil {
		list = &node{kind: listKind, made: elements, pos: p.at(k.off)}
		t.put(k.name, list.pos, list)
	}
	if list.made != elements {
		p.twice(t, k, list)
		return nil
	}
	v := &node{kind: tableKind, made: headed, pos: p.at(k.off)}
	list.add(v)
	return v
}

// parents finds or makes the tables that a header's last key stands in.
func (p *builder) parents(keys []part) *node {
	t := p.root
	for _, k := range keys[:len(keys)-1] {
		v := t.get(k.name)
		switch {
		case v == nil:
			v = p.table(t, k, implied)
		case v.made == elements:
			v = v.items[len(v.items)-1]
		case v.kind != tableKind || v.made == inlined:
			p.twice(t, k, v)
			return nil
		}
		t = v
	}
	return t
}

// assign puts a value under a dotted key of t.
func (p *builder) assign(t *node, keys []part, value *unstable.Node) {
	for _, k := range keys[:len(keys)-1] {
		v := t.get(k.name)
		switch {
		case v == nil:
			v = p.table(t, k, dotted)
		case v.kind != tableKind || v.made != dotted:
			p.twice(t, k, v)
			return
		}
		t = v
	}
	k := keys[len(keys)-1]
	v := &node{parent: t, name: k.name}
	p.value(v, value, p.valueAt(k.end))
	if old := t.get(k.name); old != nil {
		p.twice(t, k, old)
		return
	}
	t.put(k.name, p.at(k.off), v)
}

// valueAt is the offset of the value after the key that ends at off.
func (p *builder) valueAt(off int) int {
	rest := bytes.TrimLeft(p.data[off:], " \t=")
	return len(p.data) - len(rest)
}

// value fills n with the value at off. n has its parent already, so that what is
// in it can be named.
func (p *builder) value(n *node, x *unstable.Node, off int) {
	if x.Raw.Length > 0 { // lists have none
		off = p.base + int(x.Raw.Offset)
	}
	n.pos, n.text = p.at(off), string(x.Data)
	switch x.Kind {
	case unstable.InlineTable:
		n.kind, n.made = tableKind, inlined
		for it := x.Children(); it.Next(); {
			p.assign(n, p.keys(it.Node().Key()), it.Node().Value())
		}
	case unstable.Array:
		n.kind = listKind
		for it := x.Children(); it.Next(); {
			item := &node{}
			n.add(item)
			p.value(item, it.Node(), off)
		}
	case unstable.String:
		n.kind = stringKind
	case unstable.Integer:
		n.kind = intKind
	case unstable.Float:
		n.kind = floatKind
	case unstable.Bool:
		n.kind = boolKind
	default:
		n.kind = timeKind
	}
}

func (p *builder) table(t *node, k part, m made) *node {
	v := &node{kind: tableKind, made: m, pos: p.at(k.off)}
	t.put(k.name, v.pos, v)
	return v
}
