package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kind is what a node is.
type kind uint8

const (
	tableKind kind = iota
	listKind
	stringKind
	intKind
	floatKind
	boolKind
	timeKind
)

// words are the kinds as faults name them.
var words = [...]string{
	tableKind: "a table", listKind: "a list", stringKind: "a string", intKind: "a whole number",
	floatKind: "a number with a fraction", boolKind: "true or false", timeKind: "a date or time",
}

// made is how a table came to be; TOML lets only some of them be added to.
type made uint8

const (
	implied  made = iota // by the header of a table in it
	headed               // by its own header
	dotted               // by a dotted key
	inlined              // as a value, { … }: complete
	elements             // a list made by [[headers]]
)

// node is a value of the file with its place in it.
type node struct {
	kind kind
	made made
	pos  Pos
	text string // a string's value; numbers, booleans and times as written

	entries []entry        // of a table, in the order of the file
	index   map[string]int // of entries
	items   []*node        // of a list

	parent *node
	name   string // the key under which it stands; "" for an item
	nth    int    // from 1, in a list; 0 = it stands under a key
}

// entry is one key of a table.
type entry struct {
	key   string
	pos   Pos // of the key
	value *node
}

// get returns the value of a key, nil when there is none.
func (n *node) get(key string) *node {
	if i, ok := n.index[key]; ok {
		return n.entries[i].value
	}
	return nil
}

// put adds a key that is not there yet.
func (n *node) put(key string, pos Pos, v *node) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[key] = len(n.entries)
	n.entries = append(n.entries, entry{key, pos, v})
	v.parent, v.name = n, key
}

// add appends an item to a list.
func (n *node) add(v *node) {
	n.items = append(n.items, v)
	v.parent, v.nth = n, len(n.items)
}

// owner is the element of [[installation]] or [[target]] that n is, or nil: what
// stands in it is named by it.
func (n *node) owner() *node {
	if n.nth > 0 && n.kind == tableKind && n.parent.parent != nil && n.parent.parent.parent == nil {
		return n
	}
	return nil
}

// label names a value for people: lease.ttl, installation "acme": app_token.
// Keys of [installation.config] are named without the config between.
func (n *node) label() string {
	switch {
	case n.parent == nil:
		return n.name
	case n.owner() != nil:
		return ownerLabel(n.parent.name, n.id(), n.nth)
	case n.nth > 0 && n.kind != tableKind:
		return n.parent.label()
	case n.nth > 0:
		return fmt.Sprintf("%s[%d]", n.parent.label(), n.nth-1)
	}
	up := n.parent
	if up.name == "config" && up.parent != nil && up.parent.owner() != nil {
		up = up.parent
	}
	return join(up.label(), n.name, up.owner() != nil)
}

// id is what the element calls itself, "" when it does not.
func (n *node) id() string {
	for _, key := range []string{"id", "name"} {
		if v := n.get(key); v != nil && v.kind == stringKind {
			return v.text
		}
	}
	return ""
}

func ownerLabel(list, id string, nth int) string {
	if id == "" {
		return fmt.Sprintf("%s #%d", list, nth)
	}
	return list + " " + quote(id)
}

func join(table, key string, owned bool) string {
	switch {
	case table == "":
		return bare(key)
	case owned:
		return table + ": " + bare(key)
	}
	return table + "." + bare(key)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// bare is a key as one would write it, shortened so that a fault stays a line.
func bare(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return quote(key)
}

// quote quotes a name, shortened so that a fault stays a line.
func quote(name string) string {
	const most = 64 // longer than any name in use
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return strconv.Quote(name)
}

// json is the value as encoding/json takes it. The numbers in it were found to
// be in range.
func (n *node) json() any {
	switch n.kind {
	case tableKind:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key] = e.value.json()
		}
		return m
	case listKind:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			l[i] = item.json()
		}
		return l
	case intKind:
		i, _ := n.int()
		return i
	case floatKind:
		f, _ := n.float()
		return f
	case boolKind:
		return n.text == "true"
	default:
		return n.text
	}
}

// rawJSON is the value as JSON with its keys sorted.
func (n *node) rawJSON() (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n.json()); err != nil {
		return nil, fmt.Errorf("write %s as JSON: %w", n.label(), err)
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}

// int reads a whole number of TOML.
func (n *node) int() (int64, error) {
	return strconv.ParseInt(strings.TrimPrefix(n.text, "+"), 0, 64)
}

// float reads any number of TOML.
func (n *node) float() (float64, error) {
	return strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
}
