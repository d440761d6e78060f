package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// builder makes a tree of one file. A line that is not TOML is a fault and is
// passed over, so that the faults after it come out, too.
type builder struct {
	file   string
	data   []byte
	lines  []int // offset of each line's start
	base   int   // of the data that the TOML parser has
	faults Faults
	twices []twice

	root *node
	cur  *node // the table that keys go to; nil after a header that is not one
}

// parse returns the tree of a file and what keeps it from being TOML. The tree
// holds what could be read.
func parse(file string, data []byte) (*node, Faults) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // Windows editors begin a file with it
	data = slices.Clip(data)                        // the TOML parser finds offsets by capacity
	p := &builder{file: file, data: data, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	p.root = &node{kind: tableKind, made: headed, pos: p.at(0)}
	p.cur = p.root
	if i := bytes.IndexByte(data, 0); i >= 0 { // UTF-16 is full of them
		p.fault(i, "", "not UTF-8 text; save the file as UTF-8")
		return p.root, p.faults
	}
	p.run()
	for _, t := range p.twices {
		p.fault(t.key.off, join(t.table.label(), t.key.name, t.table.owner() != nil),
			fmt.Sprintf("is defined twice, first in line %d", t.first))
	}
	return p.root, p.faults
}

// statement is how a header or a key begins. A line that is neither is the rest
// of a fault before it.
var statement = regexp.MustCompile(`^(\[\[?[ \t]*[A-Za-z_"']|[A-Za-z0-9_-]+[ \t]*=)`)

// run parses to the end. After a fault it goes on at the next line.
func (p *builder) run() {
	var toml unstable.Parser
	failing := false
	for p.base < len(p.data) {
		end := 0 // of the last good expression
		toml.Reset(p.data[p.base:])
		for toml.NextExpression() {
			end = p.expression(toml.Expression())
			failing = false
		}
		err := toml.Error()
		if err == nil {
			return
		}
		begin := p.next(p.base + end)
		at := begin
		if bad, ok := errors.AsType[*unstable.ParserError](err); ok {
			// As the TOML parser finds an offset itself; 0 capacity = it has none.
			if off := len(p.data) - cap(bad.Highlight); off >= p.base && off < len(p.data) {
				at, begin = off, min(off, begin)
			}
		}
		if !failing || statement.Match(p.data[begin:]) {
			p.fault(at, "", "not TOML: "+err.Error())
		}
		failing = true
		if p.data[begin] == '[' {
			p.cur = nil
		}
		p.base = p.resume(begin, at)
	}
}

// next is the offset of the first expression on a line after the one that ends
// at off; at the beginning of the data, of the first at all.
func (p *builder) next(off int) int {
	if off > p.base {
		off = p.lineAfter(off)
	}
	for off < len(p.data) {
		line := bytes.TrimLeft(p.data[off:], " \t")
		if len(line) > 0 && line[0] != '#' && line[0] != '\n' && line[0] != '\r' {
			return len(p.data) - len(line)
		}
		off = p.lineAfter(off)
	}
	return len(p.data) - 1
}

// resume is where to go on after a fault at off in the expression at begin: at
// a header that a list without end ran into, else at the next line.
func (p *builder) resume(begin, off int) int {
	start := p.lines[p.line(off)]
	if start > begin && bytes.HasPrefix(bytes.TrimLeft(p.data[start:], " \t"), []byte("[")) {
		return start
	}
	return p.lineAfter(off)
}

// expression puts a header or a key into the tree and returns the offset of its
// end, from base.
func (p *builder) expression(x *unstable.Node) int {
	keys := p.keys(x.Key())
	last := keys[len(keys)-1]
	switch x.Kind {
	case unstable.Table:
		p.cur = p.header(keys)
	case unstable.ArrayTable:
		p.cur = p.element(keys)
	case unstable.KeyValue:
		if p.cur != nil {
			p.assign(p.cur, keys, x.Value())
		}
		return int(x.Raw.Offset + x.Raw.Length)
	}
	return last.end - p.base
}

// part is one part of a dotted key.
type part struct {
	name     string
	off, end int // in the file
}

func (p *builder) keys(it unstable.Iterator) []part {
	var keys []part
	for it.Next() {
		k := it.Node()
		off := p.base + int(k.Raw.Offset)
		keys = append(keys, part{string(k.Data), off, off + int(k.Raw.Length)})
	}
	return keys
}

// line is the number of the line, from 0, that off is in.
func (p *builder) line(off int) int { return sort.SearchInts(p.lines, off+1) - 1 }

// lineAfter is the offset of the line after the one that off is in.
func (p *builder) lineAfter(off int) int {
	if i := p.line(off) + 1; i < len(p.lines) {
		return p.lines[i]
	}
	return len(p.data)
}

func (p *builder) at(off int) Pos {
	i := p.line(off)
	return Pos{p.file, i + 1, off - p.lines[i] + 1}
}

func (p *builder) fault(off int, key, message string) {
	pos := p.at(off)
	p.faults = append(p.faults, Fault{File: pos.File, Line: pos.Line, Col: pos.Col, Key: key, Message: message})
}

// twice is a key that was there already. It is reported when the whole tree is
// there, because then its table has a name.
type twice struct {
	table *node
	key   part
	first int // line
}

func (p *builder) twice(table *node, k part, old *node) {
	p.twices = append(p.twices, twice{table, k, old.pos.Line})
}
